"""Tables of samples: what ingests of a server and of dumps record, and what is listed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quotascope.pipeline.prometheus import recording, slices
from quotascope.pipeline.prometheus.origins import contradiction
from quotascope.pipeline.prometheus.recording import (
    ContradictingIngest,
    IngestedSamples,
    NoSamplesTable,
    NothingRead,
    ingest_dumps,
    ingest_remote,
    listed,
    recorded_past,
)
from quotascope.pipeline.prometheus.remote_read import RawSeries
from quotascope.pipeline.prometheus.samples import Labels, origins_in
from quotascope.pipeline.prometheus.slices import DAY_S, HOUR_S, Slice, Wanted
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.table import File, Map, Table, log

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

    def serve(one: Slice) -> Iterator[RawSeries]:
        names = {name for query in one.queries for name in query.values["__name__"]}
        for labels in series:
            last_ms = min(one.end_ms, round(1_000 * (until or {}).get(labels["user"], FOREVER)))
            times = np.arange(one.begin_ms // STEP_MS + 1, last_ms // STEP_MS + 1, dtype=np.int64) * STEP_MS
            if len(times) and labels["__name__"] in names:
                yield RawSeries(labels, times, np.ones(len(times)), np.zeros(len(times), np.bool_))

    return serve


def ingested(
    table: Path,
    series: Iterable[Wanted],
    serve: Callable[[Slice], Iterable[RawSeries]],
    hours: tuple[float, float],
    selector: str = "",
) -> IngestedSamples:
    """Return the report of an ingest of some hours, counted from `BEGIN`."""
    begin, end = (BEGIN + hour * HOUR_S for hour in hours)
    origin = {**ORIGIN, "selector": selector}
    return ingest_remote(str(table), origin, SETTINGS, [*series], (begin, end), serve, engine=EngineChoice.LOCAL)


def users_in(table: Path, begin: float | None = None, end: float | None = None) -> set[str]:
    past = recorded_past(str(table), (begin, end), None, EngineChoice.LOCAL)
    return {labels["user"] for labels in past.series}


def test_a_series_that_ends_on_its_first_day_is_listed(tmp_path: Path) -> None:
    """One that lived at the first midnight, and is gone the next day, is among the series of the table."""
    series = [of_user("alice"), of_user("bob")]
    serve = server(*(one.labels for one in series), until={"bob": BEGIN + 20 * HOUR_S})
    ingested(tmp_path / "t", series, serve, (0, 72))
    assert users_in(tmp_path / "t") == {"alice", "bob"}
    assert users_in(tmp_path / "t", BEGIN + DAY_S) == {"alice"}


def test_a_dump_of_several_days_lists_its_series_on_each(tmp_path: Path) -> None:
    """Any day of a dump can be read alone."""
    dump = tmp_path / "dump.txt"
    times = range(DAY * DAY_S, (DAY + 3) * DAY_S, 600)
    dump.write_text("".join(f'{{__name__="kafka_x", user="carol"}} 2 {at}000\n' for at in times))
    series = Wanted({"__name__": "kafka_x", "user": "carol"}, "carol", has_samples=True)
    ingest_dumps(str(tmp_path / "t"), SETTINGS, listed([str(dump)]), [series])
    for day in range(3):
        assert users_in(tmp_path / "t", BEGIN + day * DAY_S, BEGIN + (day + 1) * DAY_S) == {"carol"}


def test_files_of_a_dump_that_is_not_committed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after the samples were written leaves no file of them."""

    def failing(*_: object) -> None:
        raise OSError("no space")

    dump = tmp_path / "dump.txt"
    dump.write_text(f'{{__name__="kafka_x", user="dora"}} 2 {DAY * DAY_S + 60}000\n')
    series = Wanted({"__name__": "kafka_x", "user": "dora"}, "dora", has_samples=True)
    monkeypatch.setattr(recording, "_about", failing)
    with pytest.raises(OSError, match="no space"):
        ingest_dumps(str(tmp_path / "t"), SETTINGS, listed([str(dump)]), [series])
    assert not [*(tmp_path / "t").rglob("*.parquet")]


def test_an_interrupt_after_the_commit_of_a_dump_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An interrupt after the commit, such as during a checkpoint, removes no file that the table lists.

    One day has two files, which are merged. The other has one, which is committed as it was staged.
    """
    dump, commit, merge = tmp_path / "dump.txt", log.commit, Table.merged
    users = {"erin": [1, 25], "frank": [2]}
    lines = (
        f'{{__name__="kafka_x", user="{user}"}} 2 {DAY * DAY_S + hour * HOUR_S}000\n'
        for user, hours in users.items()
        for hour in hours
    )
    dump.write_text("".join(lines))
    series = [Wanted({"__name__": "kafka_x", "user": user}, user, has_samples=True) for user in users]
    days = list[int]()

    def merged(table: Table, files: list[File], map_items: Map) -> list[File]:
        days.extend(file.day for file in files)
        return merge(table, files, map_items)

    def interrupted(*arguments: Any) -> None:
        commit(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "_CHUNK", 1)
    monkeypatch.setattr(Table, "merged", merged)
    monkeypatch.setattr(log, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ingest_dumps(str(tmp_path / "t"), SETTINGS, listed([str(dump)]), series)
    assert sorted(days) == [DAY, DAY, DAY + 1]
    assert users_in(tmp_path / "t", BEGIN, BEGIN + 2 * DAY_S) == set(users)
    assert not Table.open(str(tmp_path / "t")).lost()


def test_slices_of_many_nodes_become_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of many slices, of which each has entities of all shards, is one file of each shard; no other stays."""
    monkeypatch.setattr(slices, "MOST_SAMPLES", 2_000)
    series = [of_user(f"user-{number % 20}", instance=f"{number}:1") for number in range(600)]
    asked = list[Slice]()
    answer = server(*(one.labels for one in series))

    def serve(one: Slice) -> Iterator[RawSeries]:
        asked.append(one)
        instances = {name for query in one.queries for name in query.values["instance"]}
        return (raw for raw in answer(one) if raw.labels["instance"] in instances)

    report = ingested(tmp_path / "t", series, serve, (0, 2))
    assert (len(asked) > 500, report.samples) == (True, 600 * 120)
    table = Table.open(str(tmp_path / "t"))
    of_day = [file.shard for file in table.files() if file.day == DAY]
    assert sorted(set(of_day)) == sorted(of_day) == [0, 1]
    assert {Path(file.path).name for file in table.files()} == {
        file.name for file in (tmp_path / "t").rglob("*.parquet")
    }


def test_origins_are_read_without_samples(tmp_path: Path) -> None:
    """What says where samples are from is in a file of its own, so that no year of samples is read for it."""
    one = of_user("", has_no_user="true")
    ingested(tmp_path / "t", [one], server(one.labels), (0, 30), 'job="kafka"')
    for file in (tmp_path / "t").glob("day=2*/**/*.parquet"):
        file.write_bytes(b"")
    spans = [(origin["selector"], origin["begin"], origin["end"]) for origin in origins_in(Table.open(f"{tmp_path}/t"))]
    hours = [DAY * DAY_S + hour * HOUR_S for hour in (0, 24, 30)]
    assert sorted(spans) == [('job="kafka"', str(begin), str(end)) for begin, end in pairwise(hours)]


@pytest.mark.parametrize(
    ("ingests", "asked", "message"),
    [
        ([(1, 4)], (5, 6), "2024-10-04 01:00:00 UTC to 2024-10-04 04:00:00 UTC are in it"),
        ([(1, 2), (2, 3), (7, 8)], (9, 10), "UTC to 2024-10-04 03:00:00 UTC, 2024-10-04 07:00:00 UTC to 2024-10-04 08"),
        ([(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)], (11, 12), "2 earlier periods, 2024-10-04 05:00:00 UTC to"),
    ],
)
def test_a_period_that_a_table_has_not_is_refused_with_those_that_it_has(
    tmp_path: Path, ingests: list[tuple[float, float]], asked: tuple[float, float], message: str
) -> None:
    """The message names the hours that are in the table, without those that follow each other."""
    one = of_user("kim")
    for hours in ingests:
        ingested(tmp_path / "t", [one], server(one.labels), hours)
    with pytest.raises(NoSamplesTable, match=message):
        users_in(tmp_path / "t", *(BEGIN + hour * HOUR_S for hour in asked))


def test_hours_without_an_answer_are_not_known(tmp_path: Path) -> None:
    """A server that lists series and answers nothing is refused, and asked again about the same hours."""
    series = [of_user("erin")]
    with pytest.raises(NothingRead, match="prometheus:9090 lists 1 series"):
        ingested(tmp_path / "t", series, server(), (1, 4))
    assert not [*(tmp_path / "t").rglob("*.parquet")]
    report = ingested(tmp_path / "t", series, server(series[0].labels), (1, 4))
    assert report == IngestedSamples(samples=180, hours=3, known_hours=0)


def test_later_hours_without_a_sample_are_no_failure(tmp_path: Path) -> None:
    """A table that has samples of the period takes none of a gap after them."""
    one = of_user("ida")
    ingested(tmp_path / "t", [one], server(one.labels), (1, 4))
    report = ingested(tmp_path / "t", [one], server(one.labels, until={"ida": BEGIN + 4 * HOUR_S}), (1, 30))
    assert (report.samples, report.known_hours) == (0, 3)


def test_samples_of_the_hours_alone_are_counted(tmp_path: Path) -> None:
    """Neither what an ingest writes about itself counts, nor samples before its hours, nor series for their labels."""
    one, context = of_user("frank"), Wanted({"__name__": "kafka_info", "instance": "a:1"}, "", has_samples=False)
    report = ingested(tmp_path / "t", [one, context], server(one.labels), (2, 3))
    assert (report.samples, report.hours) == (60, 1)


def test_a_day_without_a_sample_is_asked_for_again(tmp_path: Path) -> None:
    """A day that the server has not yet is no part of the hours that are known."""
    one = of_user("gina")
    first = ingested(tmp_path / "t", [one], server(one.labels, until={"gina": BEGIN + 23 * HOUR_S}), (22, 26))
    assert (first.samples, first.hours, first.known_hours) == (60, 2, 0)
    again = ingested(tmp_path / "t", [one], server(one.labels), (22, 26))
    assert (again.samples, again.hours, again.known_hours) == (120, 2, 2)


def test_hours_of_other_metrics_are_read(tmp_path: Path) -> None:
    """The same hours of the same server are not known for series of an exporter if agents' were read."""
    agents, exporters = of_user("hugo"), of_user("hugo", "kafka_y")
    serve = server(agents.labels, exporters.labels)
    for series in (agents, exporters):
        assert ingested(tmp_path / "t", [series], serve, (0, 2)).samples == 120
    assert ingested(tmp_path / "t", [agents], serve, (0, 2)).known_hours == 2


def test_external_labels_are_removed_where_another_metric_has_them(tmp_path: Path) -> None:
    """A server adds its cluster to what it answers; series that have one of their own keep it."""
    plain, own = of_user("ivy"), of_user("ivy", "kafka_limit", cluster="edge")
    serve = server({**plain.labels, "cluster": "prod"}, own.labels)
    assert ingested(tmp_path / "t", [plain, own], serve, (0, 1)).samples == 120
    past = recorded_past(str(tmp_path / "t"), (None, None), None, EngineChoice.LOCAL)
    assert [labels.get("cluster") for labels in past.series if labels["user"] == "ivy"].count("edge") == 1


def test_two_clusters_in_a_table_are_refused(tmp_path: Path) -> None:
    """A selector of another cluster is refused with both, and adds nothing."""
    one = of_user("jack")
    ingested(tmp_path / "t", [one], server(one.labels), (0, 1), 'cluster="north",job="kafka"')
    with pytest.raises(ContradictingIngest, match=r'cluster="north".*cluster="south"'):
        ingested(tmp_path / "t", [one], server(one.labels), (1, 2), 'job="kafka",cluster="south"')
    assert recorded_past(str(tmp_path / "t"), (None, None), None, EngineChoice.LOCAL).end == BEGIN + HOUR_S


@pytest.mark.parametrize(
    ("first", "second", "contradicts"),
    [
        ('cluster="a"', 'cluster="b"', True),
        ('cluster="a"', 'job="kafka"', False),
        ('cluster="a"', 'cluster=~"a|b"', False),
        ('cluster=~"b.*"', 'cluster="a"', True),
        ('cluster="a"', 'cluster!="a"', True),
        ('cluster!~"c|d"', 'cluster="a"', False),
        ('cluster="a, cluster=\\"b\\""', 'cluster="b"', True),
        ('instance="a:1"', 'instance="b:1"', False),
        ('cluster="a"', 'cluster=~"(?P<"', False),
        ("", 'cluster="a"', False),
    ],
)
def test_selectors_contradict_each_other_by_a_label(first: str, second: str, *, contradicts: bool) -> None:
    """No series matches both, though nodes of one cluster may be read one after the other."""
    origins = [{"selector": text, "instance_label": "instance"} for text in (first, second)]
    assert bool(contradiction(origins)) == contradicts
    assert bool(contradiction(reversed(origins))) == contradicts
