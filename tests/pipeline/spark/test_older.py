"""What workers read of histories that an earlier release made, without Spark."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.pipeline.history.requests import requests
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import History, history_of
from quotascope.pipeline.replay.frame import in_order
from quotascope.pipeline.spark.shuffled import _read


def test_rows_without_a_place_are_replayed_in_one_order(tmp_path: Path) -> None:
    """However a shuffle mixes rows of one millisecond, those of an earlier release come first, by user, in the order of the file; others by their place."""
    alike = [{"user": user, "client_id": "c", "connection": f"{n}"} for n, user in enumerate("babcabca")]
    made = history_of(requests(*alike, *alike))
    older = pa.array([n < len(alike) for n in range(len(made))])
    for name in ("file", "position"):
        place = made.column_names.index(name)
        values = [None if old.as_py() else value for old, value in zip(older, made[name].to_pylist(), strict=True)]
        made = made.set_column(place, made.schema.field(name), pa.array(values, made.schema.field(name).type))
    history = History.create(str(tmp_path), buckets=1).detail
    append(history, "a", made)
    rows = pa.Table.from_batches(_read(history, history.files()))
    groups = np.zeros(len(made), np.int64)
    mixed = rows.take(np.random.default_rng(1).permutation(len(rows)))
    found = mixed.take(in_order(mixed, groups))["connection"]
    assert found == made.take(in_order(made, groups))["connection"]
