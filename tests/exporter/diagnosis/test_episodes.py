"""Throttle episodes of a running exporter: what one is, what is kept, and what is logged."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from math import nan

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.strategies import HOSTILE

from quotascope.exporter.config import LogConfig, LogFormat
from quotascope.exporter.diagnosis import episodes as diagnosis_episodes
from quotascope.exporter.diagnosis.episodes import Episodes
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.snapshot import EntityUsage, SourceHealth

ZERO, SLOW, LONG, UNREAD = 0.0, 0.5, 150.0, nan


def noted(
    episodes: Episodes,
    seconds: float,
    *entities: EntityUsage,
    is_read: bool = True,
    sources: Sequence[SourceHealth] = (health(),),
) -> None:
    """Note a snapshot so long after the start; ``is_read`` says whether the node was read."""
    state = snapshot(*entities, sources=tuple(sources))
    state = replace(state, taken_at=NOW + seconds, nodes=state.nodes if is_read else ())
    episodes.note(state)


def times(episodes: Episodes) -> list[tuple[float, float, float, bool]]:
    """Return begin and end of each episode in steps of 15 s, its longest throttle time, and if it is ongoing."""
    return [
        ((episode.began_at - NOW) / 15, (episode.seen_at - NOW) / 15, episode.longest_seconds, episode.ongoing)
        for episode in reversed(list(episodes))
    ]


@pytest.mark.parametrize(
    ("throttles", "expected"),
    [
        ([ZERO] * 4, []),
        ([ZERO, SLOW, 2 * SLOW, ZERO], [(1, 2, 1.0, True)]),
        ([SLOW, *[ZERO] * 5], [(0, 0, 0.5, False)]),
        ([SLOW, ZERO, ZERO, ZERO, SLOW], [(0, 4, 0.5, True)]),
        ([SLOW, ZERO, ZERO, ZERO, ZERO, SLOW], [(0, 0, 0.5, False), (5, 5, 0.5, True)]),
        ([SLOW, *[UNREAD] * 9, SLOW], [(0, 10, 0.5, True)]),
        ([SLOW, ZERO, *[UNREAD] * 8, SLOW], [(0, 0, 0.5, False), (10, 10, 0.5, True)]),
        ([SLOW, *[UNREAD] * 60], [(0, 0, 0.5, True)]),
        ([SLOW, *[UNREAD] * 61], [(0, 0, 0.5, False)]),
        # muted for 150 s again and again, which brokers report for 60 s of each
        ([*[LONG] * 5, *[ZERO] * 5, *[LONG] * 5], [(0, 14, 150.0, True)]),
        # another connection's short throttle lowers the average
        ([LONG, 20.0, *[ZERO] * 6, LONG], [(0, 8, 150.0, True)]),
        ([LONG, *[ZERO] * 10], [(0, 0, 150.0, True)]),
        ([LONG, *[ZERO] * 11], [(0, 0, 150.0, False)]),
        ([1e7, *[ZERO] * 64], [(0, 0, 1e7, True)]),
        ([1e7, *[ZERO] * 65], [(0, 0, 1e7, False)]),
        ([1e7, *[UNREAD] * 60], [(0, 0, 1e7, True)]),
        ([1e7, *[UNREAD] * 61], [(0, 0, 1e7, False)]),
    ]
)  # fmt: skip
def test_an_episode_ends_with_a_pause_of_more_than_a_minute(
    throttles: list[float], expected: list[tuple[float, float, float, bool]]
) -> None:
    """
    An episode ends with a pause of more than a minute, but not while its throttle may last.

    While its node is not read, it goes on for a quarter of an hour.
    """
    episodes = Episodes()
    for step, throttle in enumerate(throttles):
        is_number = throttle == throttle  # noqa: PLR0124 - NaN
        usages = [usage(throttle_time_seconds=throttle)] if is_number else []
        noted(episodes, 15.0 * step, *usages, is_read=is_number)
    assert times(episodes) == expected


@pytest.mark.parametrize(
    "ruled", [[False, True, True], [False, True, False], [True, True, False], [True, False, False]]
)
def test_the_rule_is_the_last_known(ruled: list[bool]) -> None:
    """Limits may be read after a throttle, and the average throttle time may still grow when the quota is gone."""
    episodes = Episodes()
    under = usage(configured=limits(), limit=1_000.0, usage=2_000.0)
    free = usage(usage=9_000.0)
    for step, has_rule in enumerate(ruled):
        noted(episodes, 15.0 * step, replace(under if has_rule else free, throttle_time_seconds=SLOW * (step + 1)))
    (episode,) = episodes
    assert episode.usage == replace(under, throttle_time_seconds=3 * SLOW)


def test_what_is_gone_is_quiet_and_what_is_unknown_is_not() -> None:
    """A missing bean, as after a restart, ends an episode, and an unknown throttle time does not."""
    slow = usage(throttle_time_seconds=SLOW)
    for later, ongoing in ((None, False), (replace(slow, throttle_time_seconds=None), True)):
        episodes = Episodes()
        noted(episodes, 0, slow)
        noted(episodes, 61, *filter(None, [later]))
        assert [episode.ongoing for episode in episodes] == [ongoing]


def test_a_clock_that_is_set_back_keeps_lengths() -> None:
    """A clock that is set back delays no episode, and puts none into the future."""
    episodes = Episodes()
    for seconds, throttle in ((3_600, SLOW), (3_615, SLOW), (0, SLOW), (15, ZERO), (61, ZERO)):
        noted(episodes, seconds, usage(throttle_time_seconds=throttle))
    assert times(episodes) == [(-1, 0, 0.5, False)]
    episodes = Episodes()
    for seconds, throttle in ((3_600, SLOW), (3_615, ZERO), (3_700, ZERO), (3_715, ZERO), (0, ZERO)):
        noted(episodes, seconds, usage(throttle_time_seconds=throttle))
    assert episodes.since == NOW - 115
    assert list(episodes.gaps) == [(NOW - 100, NOW - 15)]
    assert [episode.seen_at <= NOW for episode in episodes] == [True]


@pytest.mark.parametrize("step", [3_600.0, -3_600.0])
def test_a_clock_that_is_set_during_an_episode_changes_no_length(step: float) -> None:
    """A clock that is set neither ends nor splits an episode, which has its true length and the new time."""
    episodes = Episodes()

    def at(seconds: float, throttle: float, ahead: float = 0.0) -> None:
        state = snapshot(usage(throttle_time_seconds=throttle))
        episodes.note(replace(state, taken_at=NOW + seconds + ahead, boot_seconds=5_000 + seconds))

    with capture_logs() as lines:
        at(0, SLOW)
        at(15, SLOW)
        at(30, ZERO, step)
        assert [(episode.began_at, episode.seen_at, episode.ongoing) for episode in episodes] == [
            (NOW + step, NOW + step + 15, True)
        ]
        assert episodes.since == NOW + step
        at(45, SLOW)
        assert times(episodes) == [(0, 3, 0.5, True)]
        at(90, ZERO, step)
        assert [episode.ongoing for episode in episodes] == [True]
        at(106, ZERO, step)
    assert [(line["event"], line.get("seconds")) for line in lines] == [
        ("throttle episode began", None),
        ("throttle episode ended", 45.0),
    ]
    assert not episodes.gaps


def test_an_episode_ends_when_the_machine_was_suspended() -> None:
    """A suspended machine, whose two clocks both went on, ends the episodes: the time between was not seen."""
    episodes = Episodes()
    for seconds, throttle in ((0.0, SLOW), (3_600.0, ZERO), (3_615.0, ZERO)):
        state = snapshot(usage(throttle_time_seconds=throttle))
        episodes.note(replace(state, taken_at=NOW + seconds, boot_seconds=5_000 + seconds))
    assert times(episodes) == [(0, 0, 0.5, False)]
    assert list(episodes.gaps) == [(NOW, NOW + 3_600)]


def test_memory_is_bounded_and_what_was_lost_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ended episodes are dropped first, with the time from which on all are known; the rest is a gap."""
    monkeypatch.setattr(diagnosis_episodes, "MOST_CHARACTERS", 3 * 410)
    episodes = Episodes()
    for number in range(5):
        noted(episodes, 100.0 * number, usage(user=f"u{number}", throttle_time_seconds=SLOW))
    assert [episode.usage.entity.user for episode in episodes] == ["u4", "u3", "u2"]
    assert episodes.since == NOW + 100
    noted(episodes, 500, *(usage(user=f"v{number}", throttle_time_seconds=SLOW) for number in range(4)))
    assert len(list(episodes)) == 3
    assert episodes.gaps[-1][1] == NOW + 500


@pytest.mark.parametrize(
    ("sources", "gap"),
    [
        ((health(),), False),
        ((health(up=False),), True),
        ((), True),
        ((health(), health(late=True)), True),
        ((health(), health(up=False, stand_by_of="1")), False),
    ],
)
def test_what_was_not_seen_is_known(sources: Sequence[SourceHealth], *, gap: bool) -> None:
    """Times without a read of a source, or with old numbers of it, are gaps; adjacent ones are one."""
    episodes = Episodes()
    assert episodes.since is None
    noted(episodes, 0)
    for seconds in (15, 30):
        noted(episodes, seconds, usage(), sources=sources)
    noted(episodes, 45)
    assert list(episodes.gaps) == ([(NOW, NOW + 30)] if gap else [])
    assert episodes.since == NOW


def test_other_gaps() -> None:
    """
    A minute without a collection, and agents without throttle times, are gaps.

    If there are too many, the time before counts as unknown.
    """
    episodes = Episodes()
    for seconds in (0, 60, 121):
        noted(episodes, seconds)
    assert list(episodes.gaps) == [(NOW + 60, NOW + 121)]
    noted(episodes, 130, usage(throttle_time_seconds=None))
    assert list(episodes.gaps) == [(NOW + 60, NOW + 130)]
    for number in range(101):
        noted(episodes, 1_000 + 100 * number)
        noted(episodes, 1_001 + 100 * number)
    assert len(episodes.gaps) == 100
    assert episodes.since == NOW + 1_000


def test_begin_and_end_are_lines_of_the_log() -> None:
    """Begin and end of an episode are log lines with the entity, time, length, size and rule."""
    slow = usage(configured=limits(), limit=1_000.0, usage=2_000.0, throttle_time_seconds=SLOW)
    episodes = Episodes()
    with capture_logs() as lines:
        for step in range(3):
            noted(episodes, 15.0 * step, slow)
        noted(episodes, 100)
    began, ended = lines
    common = {
        "quota_type": "produce",
        "broker": "1",
        "user": "alice",
        "client_id": "",
        "began": "2026-11-21T09:03:00.000+00:00",
        "longest_throttle_seconds": 0.5,
        "utilization": 2.0,
        "limit": 1000.0,
        "rule": "3 user alice",
        "log_level": "info",
    }
    assert began == common | {"event": "throttle episode began"}
    assert ended == common | {
        "event": "throttle episode ended",
        "ended": "2026-11-21T09:03:30.000+00:00",
        "seconds": 30.0,
    }


def test_a_storm_does_not_flood_the_log() -> None:
    """A thousand entities are sixty log lines in a minute, and one that counts the others."""
    storm = [usage(user=f"u{number}", throttle_time_seconds=SLOW) for number in range(1_000)]
    episodes = Episodes()
    with capture_logs() as lines:
        for step in range(4):
            noted(episodes, 15.0 * step, *storm)
        assert len(lines) == 60
        noted(episodes, 60, *storm)
        noted(episodes, 130)
    assert len(lines) == 60 + 1 + 60
    counted = [line["lines"] for line in lines if "not logged" in line["event"]]
    assert counted == [1_000 - 60]
    assert len(list(episodes)) == 1_000


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize("log_format", [LogFormat.LOGFMT, LogFormat.JSON])
def test_no_name_breaks_a_line(log_format: LogFormat) -> None:
    """No name of a client or of a node breaks a line."""
    stream = io.StringIO()
    configure_logs(LogConfig(format=log_format), stream)
    hostile = [usage(user=name, client_id=name, broker=name, throttle_time_seconds=SLOW) for name in HOSTILE]
    noted(Episodes(), 0, *hostile)
    *lines, last_line = stream.getvalue().split("\n")
    assert last_line == ""
    assert len(lines) == len(HOSTILE)
    assert all(line.isprintable() for line in lines)
