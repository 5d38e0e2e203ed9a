"""Tables of samples: what ingests of a server and of dumps record, and what is listed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from quotascope.pipeline.prometheus import recording
from quotascope.pipeline.prometheus.recording import IngestedSamples, ingest_dumps, ingest_remote, listed, recorded_past
from quotascope.pipeline.prometheus.remote_read import RawSeries
from quotascope.pipeline.prometheus.samples import Labels
from quotascope.pipeline.prometheus.slices import DAY_S, HOUR_S, Slice, Wanted
from quotascope.pipeline.runs.engine import EngineChoice

DAY = 20_000
BEGIN = float(DAY * DAY_S)
ORIGIN = {"address": "prometheus:9090", "selector": ""}
SETTINGS = {"instance_label": "instance", "replica_labels": "[]", "dialect": "auto", "nodes": "{}"}
STEP_MS = 60_000
FOREVER = 1e10
"""Unix time in seconds that no test reaches."""


def of_user(user: str, name: str = "kafka_x", **labels: str) -> Wanted:
    return Wanted({"__name__": name, "user": user, "instance": "a:1", **labels}, user, has_samples=True)


def server(*series: Labels, until: dict[str, float] | None = None) -> Callable[[Slice], Iterator[RawSeries]]:
    """Return a reader of series with a sample a minute, of some users up to a Unix time in seconds."""

    def read(one: Slice) -> Iterator[RawSeries]:
        names = {name for query in one.queries for name in query.values["__name__"]}
        for labels in series:
            last_ms = min(one.end_ms, round(1_000 * (until or {}).get(labels["user"], FOREVER)))
            times = np.arange(one.begin_ms // STEP_MS + 1, last_ms // STEP_MS + 1, dtype=np.int64) * STEP_MS
            if len(times) and labels["__name__"] in names:
                yield RawSeries(labels, times, np.ones(len(times)), np.zeros(len(times), np.bool_))

    return read


def ingested(
    table: Path,
    wanted: Iterable[Wanted],
    read: Callable[[Slice], Iterable[RawSeries]],
    hours: tuple[float, float],
    settings: dict[str, str] | None = None,
) -> IngestedSamples:
    """Return the report of an ingest of some hours, counted from `BEGIN`."""
    begin, end = (BEGIN + hour * HOUR_S for hour in hours)
    return ingest_remote(str(table), ORIGIN, settings or SETTINGS, [*wanted], (begin, end), read)


def users_in(table: Path, begin: float | None = None, end: float | None = None) -> set[str]:
    past = recorded_past(str(table), (begin, end), None, EngineChoice.LOCAL)
    return {labels["user"] for labels in past.series}


def test_a_series_that_ends_on_its_first_day_is_listed(tmp_path: Path) -> None:
    """One that lived at the first midnight, and is gone the next day, is among the series of the table."""
    wanted = [of_user("alice"), of_user("bob")]
    read = server(*(one.labels for one in wanted), until={"bob": BEGIN + 20 * HOUR_S})
    ingested(tmp_path / "t", wanted, read, (0, 72))
    assert users_in(tmp_path / "t") == {"alice", "bob"}
    assert users_in(tmp_path / "t", BEGIN + DAY_S) == {"alice"}


def test_a_dump_of_several_days_lists_its_series_on_each(tmp_path: Path) -> None:
    """Any day of a dump can be read alone."""
    dump = tmp_path / "dump.txt"
    times = range(DAY * DAY_S, (DAY + 3) * DAY_S, 600)
    dump.write_text("".join(f'{{__name__="kafka_x", user="carol"}} 2 {at}000\n' for at in times))
    wanted = Wanted({"__name__": "kafka_x", "user": "carol"}, "carol", has_samples=True)
    ingest_dumps(str(tmp_path / "t"), SETTINGS, listed([str(dump)]), [wanted])
    for day in range(3):
        assert users_in(tmp_path / "t", BEGIN + day * DAY_S, BEGIN + (day + 1) * DAY_S) == {"carol"}


def test_files_of_a_dump_that_is_not_committed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after the samples were written leaves no file of them."""

    def failing(*_: object) -> None:
        raise OSError("no space")

    dump = tmp_path / "dump.txt"
    dump.write_text(f'{{__name__="kafka_x", user="dora"}} 2 {DAY * DAY_S + 60}000\n')
    wanted = Wanted({"__name__": "kafka_x", "user": "dora"}, "dora", has_samples=True)
    monkeypatch.setattr(recording, "_about", failing)
    with pytest.raises(OSError, match="no space"):
        ingest_dumps(str(tmp_path / "t"), SETTINGS, listed([str(dump)]), [wanted])
    assert not [*(tmp_path / "t").rglob("*.parquet")]
