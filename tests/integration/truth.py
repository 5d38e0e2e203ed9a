"""The bytes of teams that exporters count, beside the counters and the request logs of the brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster import sessions
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.quotas import Quotas

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.usage import by_team, find_usage
from quotascope.quotas.team_finder import TeamFinder
from quotascope.quotas.teams import read_teams

from .eventually import again_and_again, eventually, some
from .exporter import serving, settings_for
from .page import Page

CAP: Final = 50
"""Entities that the second exporter shows; it measures many more."""
BOTH: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
_FAMILIES: Final = {
    QuotaType.PRODUCE: "kafka_quota_team_produced_bytes_total",
    QuotaType.FETCH: "kafka_quota_team_fetched_bytes_total",
}
WINDOW_SECONDS: Final = 11.0
"""Length of the windows of a rate, as brokers have it by default."""
_IDLE: Final = 1_000.0
"""Bytes per second that no session is behind, such as those of empty answers."""
Sums = Mapping[QuotaType, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Bytes of the same time, each way."""

    seconds: float
    longest_pause: float
    """Longest time between two scrapes, in seconds; beyond a window of brokers, which has ten, scrapes are samples."""
    sessions: int
    moves: int
    brokers: Mapping[QuotaType, float]
    """Records that all brokers have counted."""
    counted: Sequence[Sums]
    """What the exporter without a cap counted by team, then the one with a cap of `CAP`."""
    shown: Sequence[int]
    """Number of produce series of entities that these show."""
    logged: Sums
    """Bytes of the request logs of all brokers, by team."""

    def total(self, sums: Sums, kind: QuotaType) -> float:
        """Return the sum over all teams."""
        return sum(sums[kind].values())


@contextmanager
def three_brokers(folder: Path) -> Iterator[Cluster]:
    """Yield three brokers with a default quota of users, which nobody reaches."""
    with running(Layout.TRIO, folder / "cluster", plugin=sessions.PLUGIN) as cluster:
        with closing(Quotas(cluster.connection())) as quotas:
            quotas.set(({"user": None}, {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9}))
        yield cluster


def measure(
    cluster: Cluster,
    folder: Path,
    seconds: int,
    *,
    count: int = 300,
    every: float = WINDOW_SECONDS,
    say: Callable[[str], object] = lambda _text: None,
    **changes: Any,
) -> Truth:
    """
    Let sessions work for a time, and return what each way has counted of all of it.

    It begins and ends without traffic, so that no way counts a second more than another.

    Args:
        cluster: the brokers.
        folder: for files.
        seconds: how long sessions work.
        count: number of sessions.
        every: seconds from one scrape to the next; with those of a window, each byte is in one window, also where
            scrapes slow the load down.
        say: called with a sentence for each step.
        changes: fields of `Sessions`.

    """
    topic = sessions.create_topic(cluster, "sessions")
    file = folder / "teams.yaml"
    file.write_text(yaml.safe_dump(sessions.teams()))
    base = {**settings_for(cluster.brokers, cluster.admin), "teams": str(file)}
    load = sessions.Sessions(cluster, topic, count=count, seconds=0.9 * seconds, **changes)
    with ExitStack() as stack:
        exporters = [
            stack.enter_context(serving(folder / f"exporter-{cap}", {**base, "cardinality": {"max_entities": cap}}))
            for cap in (10_000, CAP)
        ]
        texts: dict[int, str] = {}

        due = time.monotonic()

        def scrape() -> float:
            nonlocal due
            due += every
            time.sleep(max(0.0, due - time.monotonic()))
            for place, exporter in enumerate(exporters):
                texts[place] = exporter.get("/metrics").text  # not parsed: sessions would wait for that, then catch up
            return time.monotonic()

        times = stack.enter_context(again_and_again(scrape))
        eventually(lambda: some(times))
        moved_before, began = sessions.moved(cluster), time.time()
        say(f"{count} sessions within {seconds} s")
        with sessions.coming_and_going(load, move_every_seconds=15):
            time.sleep(seconds)
        ended = time.time()
        longest = max(late - early for early, late in pairwise(times))
        shown = [_entities(page) for page in _pages(texts)]
        eventually(lambda: _assert_idle(_pages(texts)), seconds=180, pause=2)
        counted = [_counted(page) for page in _pages(texts)]
        moved_after = sessions.moved(cluster)
    say(f"{load.started} sessions, {load.moves} moves, {load.waits} records that found a full queue")
    return Truth(
        seconds=ended - began,
        longest_pause=longest,
        sessions=load.started,
        moves=load.moves,
        brokers={
            QuotaType.PRODUCE: moved_after.records_in - moved_before.records_in,
            QuotaType.FETCH: moved_after.records_out - moved_before.records_out,
        },
        counted=counted,
        shown=shown,
        logged=_logged(cluster, folder, file),
    )


def _pages(texts: Mapping[int, str]) -> list[Page]:
    return [Page.of(text) for _, text in sorted(texts.items())]


def _assert_idle(pages: Sequence[Page]) -> None:
    """Raise ``AssertionError`` while a window of a broker has some traffic of a team."""
    for page in pages:
        for name in ("kafka_quota_team_produce_bytes_per_second", "kafka_quota_team_fetch_bytes_per_second"):
            assert all(sample.value < _IDLE for sample in page.series(name))


def _counted(page: Page) -> Sums:
    """Return the bytes of each team that an exporter has counted."""
    return {
        kind: {sample.labels["team"]: sample.value for sample in page.series(name)} for kind, name in _FAMILIES.items()
    }


def _entities(page: Page) -> int:
    return len({sample.labels["user"] for sample in page.series("kafka_quota_produce_bytes_per_second")})


def _logged(cluster: Cluster, folder: Path, teams: Path) -> Sums:
    """Return the bytes of each team by the request logs of all brokers."""
    history = str(folder / "usage")
    for broker in cluster.brokers:
        ingest_logs([str(broker.request_log)], history, IngestOptions(broker=str(broker.node_id)))
    usage = by_team(find_usage(history), TeamFinder(read_teams(teams)))
    return {
        kind: {client.team or "": float(client.amount) for client in usage.clients if client.kind is kind}
        for kind in BOTH
    }
