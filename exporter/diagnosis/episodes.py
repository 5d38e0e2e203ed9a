"""
Finds throttle episodes: from the first to the last throttle of an entity without a long pause.

Brokers report a throttle for 30 to 60 s. So collections that are more than 30 s apart may miss a throttle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from quotascope.metrics.kafka.windows import EPISODE_PAUSE_SECONDS

from ..snapshot import Columns, Entity, EntityUsage, Place, Snapshot, place_of
from .units import rule_or_cause, throttles_unknown

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MOST_CHARACTERS: Final = 16 << 20
"""Most characters that are kept: with ordinary names, about 40,000 episodes."""
MOST_LINES: Final = 60
"""Most lines of log in a minute, besides a line that counts the others."""
MOST_GAPS: Final = 100
_CLOCK_STEP_SECONDS: Final = 0.1
"""Smallest change of the clock that counts as a clock that was set; smaller ones are delays between two reads."""
_CHARACTERS: Final = 400
"""Memory of an episode in characters, without its names."""
_LOST_SECONDS: Final = 900.0
"""
Time after which an episode on a node that is not read counts as ended when it was seen last.

It is also the longest throttle that keeps an episode open, since its client may be gone.
"""


def _logger() -> FilteringBoundLogger:
    import structlog  # noqa: PLC0415 - programs that only read episodes start sooner without it

    return cast("FilteringBoundLogger", structlog.get_logger())


@dataclass(slots=True, kw_only=True)
class Episode:
    """
    One throttle episode of an entity on a node.

    Times are times of collections, in Unix seconds. If the clock is set, they are set with it, so that durations and
    ages stay right.
    """

    began_at: float
    """Time of the first collection that showed a throttle. The exporter's first one may show an older throttle."""
    seen_at: float
    """Time of the last collection that showed a throttle, which may have ended up to 60 s before."""
    usage: EntityUsage
    """
    The entity with its limit, rule and utilization when its throttle time, an average of 30 to 60 s, was longest.

    If it had no rule then, they are the last known ones, since the average may still grow after a quota was removed.
    """
    muted_until: float
    """Time until which a throttle may last. Brokers report a throttle for a minute, however long it is."""
    ongoing: bool = True
    quiet: bool = False
    """True if its node was read without a throttle since ``seen_at``."""

    @property
    def longest_seconds(self) -> float:
        """The longest throttle time in seconds."""
        return self.usage.throttle_time_seconds or 0.0

    @property
    def characters(self) -> int:
        """Memory that the episode takes, in characters."""
        entity = self.usage.entity
        return _CHARACTERS + len(entity.user) + len(entity.client_id)


class Episodes:
    """
    The throttle episodes since the exporter started.

    Of the episodes that ended, the latest are kept, as many as fit into ``MOST_CHARACTERS``. Noting a snapshot costs a
    few array operations, and work for each entity that is throttled or was throttled in the last minute. The begin and
    the end of an episode are logged, in ``MOST_LINES`` a minute at most.
    """

    def __init__(self) -> None:
        self._open: dict[Place, Episode] = {}
        self._ended = deque[Episode]()
        self._characters = 0
        self._lines, self._unlogged, self._minute = 0, 0, float("-inf")
        self._now: float | None = None
        self._steady = 0.0
        """Steady time of the last snapshot."""
        self.since: float | None = None
        """Unix time in seconds since which episodes are known; None before the first collection."""
        self.gaps = deque[tuple[float, float]]()
        """
        Periods in which episodes may have been missed, the latest last.

        A source was not read or reported no throttle times, collections were more than a minute apart, or an episode
        did not fit.
        """

    def __iter__(self) -> Iterator[Episode]:
        """Yield the ongoing episodes, the latest to begin first, then the others, the latest to end first."""
        yield from reversed(self._open.values())
        yield from reversed(self._ended)

    def note(self, snapshot: Snapshot) -> None:
        """Add a snapshot. If the clock was set since the last one, the times of all episodes are set with it."""
        now_seconds = snapshot.taken_at
        self._follow_clock(now_seconds, snapshot.steady_at)
        if not 0 <= now_seconds - self._minute < 60:  # noqa: PLR2004 - a minute
            if self._unlogged:
                _logger().info("throttle episodes were not logged: too many in a minute", lines=self._unlogged)
            self._lines, self._unlogged, self._minute = 0, 0, now_seconds
        columns = snapshot.measured.columns
        rows = snapshot.measured.where(columns.throttle_time > 0).rows.tolist()
        throttled = {place_of(columns.layout.entities[row]): row for row in rows}
        self._end_quiet(snapshot, throttled, now_seconds)
        had_room = [self._note_throttle(columns, place, row, now_seconds) for place, row in throttled.items()]
        self._note_gap(snapshot, now_seconds, fits=all(had_room))

    def _follow_clock(self, now_seconds: float, steady: float) -> None:
        """Set all times as the clock was set since the last snapshot, forward or back."""
        elapsed, self._steady = max(0.0, steady - self._steady), steady
        if self._now is None or self.since is None:
            return
        step = now_seconds - (self._now + elapsed)
        if abs(step) < _CLOCK_STEP_SECONDS and now_seconds >= self._now:
            return
        for episode in self:
            episode.began_at, episode.seen_at = episode.began_at + step, episode.seen_at + step
            episode.muted_until += step
        self._now, self._minute, self.since = self._now + step, self._minute + step, self.since + step
        self.gaps = deque((begin + step, end + step) for begin, end in self.gaps)

    def _note_throttle(self, columns: Columns, place: Place, row: int, now_seconds: float) -> bool:
        """Begin or continue the episode of a throttled entity; return False if there was no room for it."""
        throttle_time, episode = float(columns.throttle_time[row]), self._open.get(place)
        muted_until = now_seconds + min(max(0.0, throttle_time - EPISODE_PAUSE_SECONDS), _LOST_SECONDS)
        if episode is None:
            usage = columns.usage_at(row)
            episode = Episode(began_at=now_seconds, seen_at=now_seconds, muted_until=muted_until, usage=usage)
            while self._ended and self._characters + episode.characters > MOST_CHARACTERS:
                oldest = self._ended.popleft()
                self._characters -= oldest.characters
                self.since = max(self.since or 0.0, oldest.seen_at)
            if self._characters + episode.characters > MOST_CHARACTERS:
                return False
            self._open[place] = episode
            self._characters += episode.characters
            self._log("throttle episode began", episode)
        elif throttle_time > episode.longest_seconds or not _has_rule(episode.usage):
            usage = columns.usage_at(row)
            longest = max(episode.longest_seconds, throttle_time)
            if _has_rule(episode.usage) and not _has_rule(usage):
                usage = episode.usage
            episode.usage = replace(usage, throttle_time_seconds=longest)
        episode.seen_at, episode.quiet = now_seconds, False
        episode.muted_until = max(episode.muted_until, muted_until)
        return True

    def _end_quiet(self, snapshot: Snapshot, throttled: Collection[Place], now_seconds: float) -> None:
        """
        End the episodes without a throttle for longer than a pause.

        While a node is not read, or reports no throttle times any more, its episodes stay open for longer.
        """
        paused = [(place, episode) for place, episode in self._open.items() if episode.quiet or place not in throttled]
        if not paused:
            return
        columns, brokers = snapshot.measured.columns, {node.broker for node in snapshot.nodes}
        serials = columns.layout.serials[np.isnan(columns.throttle_time)]
        paused_serials = [episode.usage.entity.serial for _, episode in paused]
        unknown = set(serials[np.isin(serials, paused_serials)].tolist())
        for place, episode in paused:
            entity = episode.usage.entity
            episode.quiet |= entity.broker in brokers and entity.serial not in unknown
            ends_at = episode.seen_at + _LOST_SECONDS
            if episode.quiet:
                ends_at = episode.muted_until + EPISODE_PAUSE_SECONDS
            if now_seconds > ends_at:
                self._end(place)

    def _end(self, place: Place) -> None:
        """End an episode, and log it."""
        episode = self._open.pop(place)
        episode.ongoing = False
        self._ended.append(episode)
        self._log(
            "throttle episode ended",
            episode,
            ended=_iso(episode.seen_at),
            seconds=round(episode.seen_at - episode.began_at, 3),
        )

    def _note_gap(self, snapshot: Snapshot, now_seconds: float, *, fits: bool) -> None:
        """Note a gap if episodes may have been missed since the last collection."""
        previous = now_seconds if self._now is None else min(self._now, now_seconds)
        if self.since is None:
            self.since = now_seconds
        used = [source for source in snapshot.sources if source.stand_by_of is None]
        all_read = used and all(source.up and not source.late and not source.stale for source in used)
        covered = all_read and fits and not throttles_unknown(snapshot.measured)
        if not covered or now_seconds - previous > EPISODE_PAUSE_SECONDS:
            begin = previous
            if self.gaps and self.gaps[-1][1] >= previous:  # the last gap goes on
                begin, _ = self.gaps.pop()
            self.gaps.append((begin, now_seconds))
        if len(self.gaps) > MOST_GAPS:
            _, end_of_oldest = self.gaps.popleft()
            self.since = max(self.since, end_of_oldest)
        self._now = now_seconds

    def _log(self, event: str, episode: Episode, **details: object) -> None:
        """Log an event of an episode, unless there were too many in this minute."""
        if self._lines >= MOST_LINES:
            self._unlogged += 1
            return
        self._lines += 1
        usage, entity = episode.usage, episode.usage.entity
        _logger().info(
            event,
            quota_type=entity.quota_type.label,
            broker=entity.broker,
            user=entity.user,
            client_id=entity.client_id,
            began=_iso(episode.began_at),
            **details,
            longest_throttle_seconds=round(episode.longest_seconds, 6),
            utilization=usage.utilization,
            limit=entity.limit,
            rule=rule_or_cause(usage),
        )


def entity_matches(entity: Entity, user: str | None, client_id: str | None) -> bool:
    """
    Return whether Kafka may count requests of a user and a client-id under an entity.

    Args:
        entity: The entity.
        user: The user; None for any.
        client_id: The client-id; None for any.

    """
    # an entity of all users matches only if a client-id is asked for: else every client-id would match any user
    of_user = user is None or entity.user == user or (not entity.user and client_id is not None)
    of_client = client_id is None or entity.client_id == client_id or (not entity.client_id and user is not None)
    has_name = bool(entity.user or entity.client_id)
    return of_user and of_client and (user is None or client_id is None or has_name)


def _has_rule(usage: EntityUsage) -> bool:
    """Return whether the limit of an entity is known to be from a configured rule."""
    resolution = usage.entity.resolution
    return resolution is not None and resolution.entity is not None


def _iso(unix_seconds: float) -> str:
    """Return a Unix time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="milliseconds")
