import pyarrow as pa
import pytest
from benchmarks.pipeline import histories
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history
from tests.pipeline.history.requests import ORDER

from quotascope.pipeline.history.schema import HISTORY

CROWD = Crowd(entities=90, giant=0.4)


def test_rows_are_sorted_as_in_files() -> None:
    """Each table has history's columns and order, and together they have all rows."""
    tables = list(history(20_000, CROWD))
    whole = pa.concat_tables(tables)
    assert whole.schema.equals(HISTORY)
    assert whole.num_rows == 20_000
    keys = whole.select(list(ORDER))
    assert keys.equals(keys.sort_by([(name, "ascending") for name in ORDER]))


def test_users_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """No user is in two tables, and the giant is one of the many."""
    monkeypatch.setattr(histories, "SLICE", 1_000)
    users = [set(each["user"].to_pylist()) for each in history(20_000, CROWD)]
    assert len(users) > 5
    assert sum(map(len, users)) == len(set.union(*users)) == 23


def test_same_seed_same_history() -> None:
    """The same seed gives the same rows, and another one others."""
    first, second = (pa.concat_tables(history(5_000, CROWD)) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(pa.concat_tables(history(5_000, CROWD, seed=8)))


def test_only_what_applies_is_charged() -> None:
    """A request charges bytes of one direction at most, and mutations only where topics are made."""
    rows = pa.concat_tables(history(20_000, CROWD)).to_pylist()
    charged = {"produce_bytes": 0, "fetch_bytes": 1, "mutations": 19}
    for column, key in charged.items():
        found = {each["api_key"] for each in rows if each[column] is not None}
        assert found == {key}
