"""Changes of a few rows of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def with_values(table: pa.Table, values: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """The table with other values in some columns of some rows, by the row's number."""
    for name in sorted({name for row in values.values() for name in row}):
        changed = {number: row[name] for number, row in values.items() if name in row}
        table = _with_column(table, name, changed)
    return table


def _with_column(table: pa.Table, name: str, changed: Mapping[int, Any]) -> pa.Table:
    field = table.schema.field(name)
    mask = np.zeros(len(table), np.bool_)
    mask[list(changed)] = True
    new = pa.array([changed[number] for number in sorted(changed)], field.type)
    column = pc.replace_with_mask(table[name].combine_chunks(), pa.array(mask), new)
    return table.set_column(table.schema.get_field_index(name), field, column)
