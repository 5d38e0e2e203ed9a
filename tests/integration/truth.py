"""The bytes of teams that exporters count, beside the counters and the request logs of the brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
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
from .relay import AgentRelay, relaying

CAP: Final = 50
"""Entities that the second exporter shows by default; it measures many more."""
BOTH: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
_FAMILIES: Final = {
    QuotaType.PRODUCE: "kafka_quota_team_produced_bytes_total",
    QuotaType.FETCH: "kafka_quota_team_fetched_bytes_total",
}
_RATES: Final = {
    QuotaType.PRODUCE: "kafka_quota_team_produce_bytes_per_second",
    QuotaType.FETCH: "kafka_quota_team_fetch_bytes_per_second",
}
_GROUPS: Final = {"Produce": QuotaType.PRODUCE, "Fetch": QuotaType.FETCH}
_OF_TEAMS: Final = ("kafka_quota_team_", "quotascope_source_age_seconds{")
WINDOW_SECONDS: Final = 11.0
"""Length of the windows of a rate, as brokers have it by default."""
_IDLE: Final = 1_000.0
"""Bytes per second that no session is behind, such as those of empty answers."""
Sums = Mapping[QuotaType, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """A scrape of an exporter, and what the brokers answered it."""

    rates: Sums
    """Bytes per second by team, as the exporter has them."""
    reported: Sums
    """The sum of `byte-rate` of a team's users on all brokers, in the answers of which the exporter made them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Bytes of the same time, each way."""

    seconds: float
    longest_pause: float
    """Longest time between two scrapes, in seconds; beyond a window of brokers, which has ten, scrapes are samples."""
    sessions: int
    moves: int
    waits: int
    """Records that found a full queue, see `Sessions.waits`."""
    brokers: Mapping[QuotaType, float]
    """Records that all brokers have counted."""
    counted: Sequence[Sums]
    """What the exporter without a cap counted by team, then the one with a cap."""
    shown: Sequence[int]
    """Number of produce series of entities that these show."""
    logged: Sums
    """Bytes of the request logs of all brokers, by team."""
    scrapes: Sequence[Sequence[Scrape]]
    """Those during the load of which each broker answered in time, by exporter as `counted`."""
    life: float
    """Mean time of a session on one broker, in seconds."""
    gap: float
    """
    Mean time between two requests of a session around any moment, in seconds: longer ones have more of the moments.
    Those of more than a second count as one.
    """

    @property
    def excess(self) -> float:
        """
        The part by which sums of rates are expected to be too high.

        A window of a second begins with a request, so that a rate has half a gap too little in its divisor of ten, and
        half a second at most. It has another half a second too much where a session begins.
        """
        return 0.5 * self.gap / (WINDOW_SECONDS - 1) + 0.5 / self.life

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
    cap: int = CAP,
    every: float = WINDOW_SECONDS,
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
        cap: entities that the second exporter shows.
        every: seconds from one scrape to the next; with those of a window, each byte is in one window, also where
            scrapes slow the load down.
        changes: fields of `Sessions`.

    """
    topic = sessions.create_topic(cluster, "sessions")
    file = folder / "teams.yaml"
    file.write_text(yaml.safe_dump(sessions.teams()))
    base = {**settings_for(cluster.brokers, cluster.admin), "teams": str(file)}
    load = sessions.Sessions(cluster, topic, count=count, seconds=0.9 * seconds, **changes)
    with ExitStack() as stack:
        exporters = []
        for most in (10_000, cap):
            relays = stack.enter_context(relaying(cluster.brokers))
            settings = {**base, "sources": _by_way_of(relays), "cardinality": {"max_entities": most}}
            exporters.append((stack.enter_context(serving(folder / f"exporter-{most}", settings)), relays))
        texts: dict[int, str] = {}
        scrapes: list[list[Scrape]] = [[] for _ in exporters]

        due = time.monotonic()

        def scrape() -> float:
            nonlocal due
            due += every
            time.sleep(max(0.0, due - time.monotonic()))
            for place, (exporter, relays) in enumerate(exporters):
                for relay in relays:
                    relay.answers.clear()
                asked = time.monotonic()
                texts[place] = exporter.get("/metrics").text  # not parsed: sessions would wait for that, then catch up
                compared = _compared(texts[place], relays, time.monotonic() - asked)
                if compared is not None:
                    scrapes[place].append(compared)
            return time.monotonic()

        times = stack.enter_context(again_and_again(scrape))
        eventually(lambda: some(times))
        moved_before, began = sessions.moved(cluster), time.time()
        for compared in scrapes:
            compared.clear()
        with sessions.coming_and_going(load, move_every_seconds=15):
            time.sleep(seconds)
        ended = time.time()
        of_load = [list(compared) for compared in scrapes]
        longest = max(late - early for early, late in pairwise(times))
        shown = [_entities(page) for page in _pages(texts)]
        eventually(lambda: _assert_idle(_pages(texts)), seconds=180, pause=2)
        counted = [_counted(page) for page in _pages(texts)]
        moved_after = sessions.moved(cluster)
    return Truth(
        seconds=ended - began,
        longest_pause=longest,
        sessions=load.started,
        moves=load.moves,
        waits=load.waits,
        brokers={
            QuotaType.PRODUCE: moved_after.records_in - moved_before.records_in,
            QuotaType.FETCH: moved_after.records_out - moved_before.records_out,
        },
        counted=counted,
        shown=shown,
        logged=_logged(cluster, folder, file),
        scrapes=of_load,
        life=load.living * (ended - began) / (load.started + load.moves),
        gap=sum(gap * min(gap, 1.0) for gap in load.gaps) / sum(load.gaps),
    )


def _by_way_of(relays: Sequence[AgentRelay]) -> list[dict[str, str]]:
    """Return sources that read agents by way of their relays."""
    return [{"dialect": "jolokia", "url": relay.url} for relay in relays]


def _compared(text: str, relays: Sequence[AgentRelay], took: float) -> Scrape | None:
    """Return a scrape that took so many seconds, None where an answer was late: then it shows an earlier one."""
    page = Page.of("".join(line for line in text.splitlines(keepends=True) if line.startswith(_OF_TEAMS)))
    ages = [sample.value for sample in page.series("quotascope_source_age_seconds")]
    answers = [relay.numbers() for relay in relays]
    if len(ages) != len(relays) or max(ages) > took or None in answers:
        return None
    reported = {kind: dict.fromkeys(sessions.ROLES, 0.0) for kind in BOTH}
    for numbers in answers:
        for (group, user, _, attribute), value in (numbers or {}).items():
            kind = _GROUPS.get(group)
            if kind is not None and attribute == "byte-rate" and value is not None and sessions.role(user):
                reported[kind][sessions.role(user)] += value
    rates = {kind: {s.labels["team"]: s.value for s in page.series(name)} for kind, name in _RATES.items()}
    return Scrape(rates=rates, reported=reported)


def _pages(texts: Mapping[int, str]) -> list[Page]:
    return [Page.of(text) for _, text in sorted(texts.items())]


def _assert_idle(pages: Sequence[Page]) -> None:
    """Raise ``AssertionError`` while a window of a broker has some traffic of a team."""
    for page in pages:
        for name in _RATES.values():
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
