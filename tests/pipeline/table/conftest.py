from pathlib import Path

import pytest
from tests.pipeline.table.rows import LAYOUT, SCHEMA, append, batch

from quotascope.pipeline.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with the rows of one append."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    append(table, "first", batch(0))
    return table
