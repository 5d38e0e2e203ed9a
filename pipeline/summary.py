"""The results of a replay added up: by candidate, by client, and by group of clients that share a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType, spelled
from quotascope.pages.baseline import HELD_BACK_LOGGED, ThrottleChange, change_between, legend_of_bounds, lower_bound
from quotascope.pages.words import amount, percent, seconds, spaced

from .blame.benefit import Benefit
from .losses import Losses, may_lack
from .rates import LimitGroup, LoggedThrottle, rate
from .releases import Followed
from .replay import Mode

Row = Mapping[str, Any]
"""A row of `quotascope.pipeline.replay.RESULTS` as Python values."""
ClientQuota = tuple[str, str, str]
"""User, client id and quota type."""

_KINDS: Final = {kind.label: kind for kind in QuotaType}
_SHAPES: Final = {
    QuotaEntity(user, client_id).level.value: (user, client_id)
    for user, client_id in product((None, DEFAULT, "a name"), repeat=2)
    if (user, client_id) != (None, None)
}
"""User and client-id of the rules of each level; a text stands for any name."""
_MEANINGS: Final = {
    Mode.OPEN_LOOP: (
        "Open loop: requests arrive as logged, whatever the throttles. That overstates throttling under a lower limit, "
        "and understates it under a higher one for clients that were throttled while the log was written."
    ),
    Mode.CLOSED_LOOP: (
        "Closed loop: a throttled connection sends its next request later, as a muted channel makes it. A delayed "
        "request counts when it arrives."
    ),
}
_OVERFLOW_SECONDS: Final = 2**31 / 1_000
"""Throttle time from which on the 31 bits that brokers have for it are too few: 24.8 days."""
_UNLOGGED: Final = "Figures may be too low for request time, of which the log lacks a part."
_UNSIZED: Final = (
    "requests of unknown size may add to figures (Fetches that were throttled until their connection ended, and "
    "controller mutations of which the log lacks the number of partitions: quotascope ingest --topics)"
)
_LOST: Final = "requests of a client are missing, or may be"
_OF_BOUNDS: Final = {
    _LOST: "Throttled shares and waits of a client of which requests are missing are only a hint.",
    _UNSIZED: "Differences are without requests of unknown size.",
}
"""Facts about figures, by the reason for which they are lower bounds."""
_COARSE: Final = "≈ marks figures that depend on the order of requests within times that are no milliseconds."
_SAVED: Final = {
    Mode.OPEN_LOOP: (
        "Wait saved for others: the part of the queue times of clients that a candidate does not throttle. Usually "
        "an upper bound: requests above a limit never come."
    ),
    Mode.CLOSED_LOOP: (
        "Wait saved for others: the part of the queue times of clients that a candidate does not throttle, with the "
        "others' requests later."
    ),
}


@dataclass(slots=True, kw_only=True)
class CandidateSummary:
    """Effect of one candidate on all clients."""

    name: str
    limited: int = 0
    """Number of pairs of client and quota type that it limits and that used it."""
    requests: int = 0
    """
    Number of requests of all pairs that some candidate limits.

    A request counts under each quota type that it charges.
    """
    incomplete: bool = False
    """True if the log lacks requests of one of the clients."""
    coarse: bool = False
    """True if times of some requests are coarser than milliseconds."""
    requests_of_unknown_size: int = 0
    """
    Number of requests of unknown size of the limited pairs.

    They are Fetches that were throttled while logged and never answered, and mutations of an unknown number of
    partitions.
    """
    mutations_of_unknown_size: int = 0
    held_back_requests: int = 0
    """Number of requests that were throttled while logged, of the limited pairs: their clients would have sent more."""
    mutations_held_back: int = 0
    """Number of controller mutations among `held_back_requests`."""
    hit: int = 0
    """Number of the limited pairs that are throttled at all."""
    muted_ms: int = 0
    throttled_requests: int = 0
    worst_share: float = 0.0
    worst: str = ""
    """Client that is throttled for the largest share of its time."""
    longest_ms: int = 0
    delayed_bytes: int = 0
    refused_mutations: int = 0
    recovery_ms: int = 0
    late_ms: int = 0
    unsent_requests: int = 0
    wait_saved: float | None = None
    """Part of the queue times of clients that it does not throttle; None if it is unknown (`Benefit.saved`)."""

    def add(self, row: Row) -> None:
        """Count one row of the candidate."""
        self.limited += 1
        self.hit += row["throttled_requests"] > 0
        self.coarse |= row.get("coarse", False)
        self.incomplete |= may_lack(row.get("missing_share", 0.0))
        self.requests += row["requests"]
        self.requests_of_unknown_size += row["requests_of_unknown_size"]
        self.held_back_requests += row["held_back_requests"]
        if row["quota_type"] == QuotaType.CONTROLLER_MUTATION.label:
            self.mutations_of_unknown_size += row["requests_of_unknown_size"]
            self.mutations_held_back += row["held_back_requests"]
        self.muted_ms += row["muted_ms"]
        self.throttled_requests += row["throttled_requests"]
        self.delayed_bytes += row["delayed_bytes"]
        self.refused_mutations += row["refused_mutations"]
        self.unsent_requests += row["unsent_requests"]
        self.longest_ms = max(self.longest_ms, row["longest_throttle_ms"])
        self.recovery_ms = max(self.recovery_ms, row["recovery_ms"])
        self.late_ms = max(self.late_ms, row["late_ms"])
        if row["throttled_share"] > self.worst_share:
            self.worst_share = row["throttled_share"]
            self.worst = spelled(row["user"], row["client_id"])

    @property
    def request_share(self) -> float:
        """Throttled requests as a part of all; 0 without a request."""
        return self.throttled_requests / self.requests if self.requests else 0.0


def totals_of(rows: Iterable[Row]) -> CandidateSummary:
    """Return the sums of rows of one candidate."""
    totals = CandidateSummary(name="")
    for row in rows:
        totals.add(row)
    return totals


def count_text(value: float) -> str:
    """Return a count with its thousands apart."""
    return f"{value:,.0f}"


def _ms(time_ms: float) -> str:
    """Return a time in ms as text."""
    return seconds(time_ms / 1_000)


def _bytes(value: float) -> str:
    """Return a number of bytes as text."""
    return f"{amount(value)}B"


def at_least(text: Callable[[float], str], value: float, unsized: int) -> str:
    """
    Return a figure with its unit; a lower bound, or "unknown" for 0, if further requests may add to it.

    Args:
        text: function from a number to a text with its unit.
        value: the figure.
        unsized: number of requests that may add to it: of unknown size, missing or held back.

    """
    if unsized and not value:
        return "unknown"
    return lower_bound(text(value), held_back=bool(unsized), short=True)


def about(text: Callable[[float], str], value: float) -> str:
    """Return a figure with its unit, marked as one that depends on times more exact than those of the log."""
    return f"≈ {text(value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Column of results in the report, JSON and docs/guides/whatif.md."""

    key: str
    """Attribute of `CandidateSummary` and key of JSON."""
    head: str
    text: Callable[[float], str]
    compared: bool = False
    """True if candidates are compared with the base by it: less is better."""
    closed: bool = False
    """True if only a closed loop measures it."""
    unsized: Sequence[str] = ("requests_of_unknown_size", "held_back_requests")
    """Attributes that count requests that may add to it; empty for none."""

    def of(self, totals: CandidateSummary) -> float | None:
        """Return its value; None if it is unknown."""
        value: float | None = getattr(totals, self.key)
        return value

    def cell(self, totals: CandidateSummary) -> str:
        """Return its value with its unit."""
        value = self.of(totals)
        text = partial(about, self.text) if totals.coarse and self.unsized else self.text
        return "unknown" if value is None else at_least(text, value, self._may_add(totals))

    def _may_add(self, totals: CandidateSummary) -> int:
        """Return the number of requests that may add to it, more than 0 if the log lacks some."""
        if not self.unsized:
            return 0
        requests: int = sum(getattr(totals, name) for name in self.unsized)
        return requests + totals.incomplete

    def difference(self, totals: CandidateSummary, base: CandidateSummary) -> float:
        """Return the difference to its value under the base."""
        return (self.of(totals) or 0.0) - (self.of(base) or 0.0)

    def difference_cell(self, totals: CandidateSummary, base: CandidateSummary) -> str:
        """
        Return the difference with sign and unit; one of shares is in percentage points.

        If the candidate may throttle more than the log shows, it is a lower bound: `≥ -9 s` saves nine seconds at most.
        """
        value = self.difference(totals, base)
        text = self.text(abs(value)).replace("%", "points")
        sign = ""
        if value > 0:
            sign = "+"
        elif value < 0:
            sign = "-"
        if not value and self.cell(totals) == "unknown":
            return "unknown"
        return lower_bound(f"{sign}{text}", held_back=bool(value) and self.is_bound(totals), short=True)

    def is_bound(self, totals: CandidateSummary) -> bool:
        """Return whether it is a lower bound, or unknown."""
        return self.of(totals) is None or self._may_add(totals) > 0


THROTTLED_FOR: Final = Figure(key="muted_ms", head="throttled for", text=_ms, compared=True)
FIGURES: Final = (
    Figure(key="limited", head="limited", text=count_text, unsized=()),
    Figure(key="hit", head="throttled", text=count_text),
    THROTTLED_FOR,
    Figure(key="request_share", head="requests throttled", text=percent, compared=True),
    Figure(key="worst_share", head="worst share", text=percent),
    Figure(key="longest_ms", head="longest", text=_ms),
    Figure(key="delayed_bytes", head="delayed", text=_bytes),
    Figure(
        key="refused_mutations",
        head="refused",
        text=count_text,
        compared=True,
        unsized=("mutations_of_unknown_size", "mutations_held_back"),
    ),
    Figure(key="recovery_ms", head="recovery", text=_ms),
    Figure(key="late_ms", head="later by", text=_ms, closed=True),
    Figure(key="unsent_requests", head="not sent", text=count_text, closed=True),
    Figure(key="wait_saved", head="wait saved for others", text=percent, unsized=()),
)
"""All figures of candidates and groups, in the order of columns."""
COMPARED: Final = tuple(figure for figure in FIGURES if figure.compared)
OF_CLIENT: Final = ("muted_ms", "worst_share", "longest_ms", "delayed_bytes", "refused_mutations", "recovery_ms")
"""Keys of the figures of a client."""


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """Limits of candidates for a group, and their effect on it."""

    group: LimitGroup
    muted_ms: int = 0
    """Muted time of all candidates and clients together."""
    amount: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """Limits by candidate."""

    def weight(self) -> tuple[int, float]:
        """Return the key by which groups are ordered: throttled time, then usage divided by the lowest limit."""
        lowest = min(self.limits.values())
        if lowest == 0.0:  # any usage is above it
            return self.muted_ms, math.inf if self.amount else 0.0
        return self.muted_ms, self.amount / lowest


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Effect of a candidate on one client or user, beside that of the base."""

    name: str
    """Name of the entity."""
    quota: str
    """Quota type in words; empty for all types of a user."""
    base: CandidateSummary
    candidate: CandidateSummary
    row: Row | None
    """Row under the candidate; None if it does not limit the client, and for a user."""

    @property
    def gained_ms(self) -> int:
        """Additional muted time."""
        return self.candidate.muted_ms - self.base.muted_ms

    @property
    def limit(self) -> tuple[str, str]:
        """Limit and rule under the candidate."""
        if self.row is None:
            return ("unlimited", "no rule") if self.quota else ("", "")
        return rate(group_of(self.row).kind, self.row["limit"]), rule_of(self.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Candidate beside the base, the first one."""

    candidate: CandidateSummary
    changes: Mapping[ThrottleChange, int] = field(default_factory=dict)
    """Number of pairs of client and quota type that it or the base throttles, by change."""
    unknown: int = 0
    """Number of such pairs that were held back, and that the replay does not throttle under the candidate's limit."""
    users: Sequence[tuple[Change, Sequence[Change]]] = field(default=())
    """Users with a difference and their clients that have one; the largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """Sums of a replay, as plain values."""

    source: str
    """Path of the history."""
    span_ms: tuple[int, int]
    """Times of its first and last decision: ms since 1970."""
    mode: Mode
    kafka: Followed
    """Release that throttle times follow."""
    candidates: Sequence[CandidateSummary]
    groups: Sequence[GroupSummary]
    """Clients that share a limit, those that are throttled longest first, then those that use most of their limit."""
    rows: Sequence[Row]
    """Rows of the results, in the same order."""

    by_client: Mapping[ClientQuota, Mapping[str, Row]]
    """Rows by client and quota type, then by candidate; a candidate that does not limit the client has none."""
    comparisons: Sequence[Comparison] = ()
    """Comparisons of all candidates but the first."""
    losses: Losses = field(default_factory=Losses)
    """Losses of the history."""
    benefit: Benefit | None = None
    """Effect of the candidates on other clients; None if no queue was simulated."""
    logged: LoggedThrottle = field(default_factory=LoggedThrottle)
    """Throttles of brokers while the log was written."""

    @property
    def figures(self) -> Sequence[Figure]:
        """Figures that the mode measures, and the wait saved for others if it was requested."""
        return [
            figure
            for figure in FIGURES
            if (self.closed or not figure.closed) and (self.benefit is not None or figure.key != "wait_saved")
        ]

    @property
    def replayed_ms(self) -> int:
        """Throttle time of all requests under the first candidate, ms."""
        return sum(row["throttled_ms"] for row in self._base_rows)

    @property
    def replayed_request_ms(self) -> int:
        """Throttle time that request quotas of the first candidate impose, ms: a part of `replayed_ms`."""
        request = QuotaType.REQUEST.label
        return sum(row["throttled_ms"] for row in self._base_rows if row["quota_type"] == request)

    @property
    def _base_rows(self) -> Sequence[Row]:
        """Rows of the first candidate."""
        base = self.candidates[0].name if self.candidates else None
        return [row for row in self.rows if row["candidate"] == base]

    @property
    def _may_overflow(self) -> bool:
        """True if a throttle of 24.8 days is possible: if clients sent as much as a limit allows in so long a time."""
        sent: dict[tuple[Any, ...], float] = {}
        for row in self.rows:
            place = row["candidate"], row["quota_type"], row["level"]
            sent[place] = sent.get(place, 0.0) + row["amount"]
        return any(
            sent[row["candidate"], row["quota_type"], row["level"]] >= _OVERFLOW_SECONDS * row["limit"]
            for row in self.rows
        )

    @property
    def closed(self) -> bool:
        """True if throttled clients send later."""
        return self.mode is Mode.CLOSED_LOOP

    @property
    def mode_name(self) -> str:
        """The mode in words."""
        return self.mode.value.replace("_", " ")

    @property
    def notes(self) -> Sequence[str]:
        """Notes for readers of these figures, one sentence or two each."""
        saved = (_SAVED[self.mode], *self.benefit.notes) if self.benefit else ()
        coarse = (_COARSE,) if self.losses.coarse else ()
        is_there = {
            HELD_BACK_LOGGED: any(candidate.held_back_requests for candidate in self.candidates),
            _LOST: any(candidate.incomplete for candidate in self.candidates),
            _UNSIZED: any(candidate.requests_of_unknown_size for candidate in self.candidates),
        }
        reasons = [reason for reason, has_reason in is_there.items() if has_reason]
        return (
            *self.losses.notes,
            *legend_of_bounds(reasons),
            *(_OF_BOUNDS[reason] for reason in reasons if reason in _OF_BOUNDS),
            *coarse,
            _MEANINGS[self.mode],
            _UNLOGGED,
            self.kafka.note_of(overflows=self._may_overflow),
            self.logged.against(self.replayed_ms, self.replayed_request_ms),
            *saved,
        )


def summary_of(  # noqa: PLR0913 - the last by name
    results: pa.Table,
    names: Sequence[str],
    source: str,
    span_ms: tuple[int, int],
    mode: Mode,
    kafka: Followed,
    *,
    benefit: Benefit | None = None,
    losses: Losses | None = None,
    logged: LoggedThrottle | None = None,
) -> ReplaySummary:
    """
    Add up the results of a replay.

    Args:
        results: `quotascope.pipeline.replay.RESULTS`, brokers added up.
        names: names of the candidates, in their order.
        source: path of the history.
        span_ms: times of its first and last decision.
        mode: mode of the replay.
        kafka: the release that throttle times follow.
        benefit: effect of the candidates on other clients.
        losses: losses of the history.
        logged: throttles of brokers while the log was written.

    """
    losses = losses or Losses()
    # Those that are throttled longest first; equal ones by name, whatever engine did the work.
    rows = sorted(
        results.to_pylist(),
        key=lambda row: (-row["muted_ms"], -row["amount"], row["user"], row["client_id"], row["quota_type"]),
    )
    share = cache(losses.share)  # a client has a row for each candidate and quota type
    for row in rows:
        row["missing_share"] = share(row["user"], row["client_id"])
        row["coarse"] = losses.coarse
    candidates = {name: CandidateSummary(name=name) for name in names}
    groups: dict[LimitGroup, GroupSummary] = {}
    by_client: dict[ClientQuota, dict[str, Row]] = {}
    for row in rows:
        candidates[row["candidate"]].add(row)
        by_client.setdefault((row["user"], row["client_id"], row["quota_type"]), {})[row["candidate"]] = row
        group = groups.setdefault(group_of(row), GroupSummary(group=group_of(row)))
        group.muted_ms += row["muted_ms"]
        group.amount += row["amount"]
        group.limits[row["candidate"]] = row["limit"]
    # a client has the same requests under every candidate that limits it; here they count under all candidates
    requests = sum(next(iter(by_candidate.values()))["requests"] for by_candidate in by_client.values())
    for candidate in candidates.values():
        candidate.requests = requests
        candidate.wait_saved = benefit.saved[candidate.name] if benefit else None
    return ReplaySummary(
        source=source,
        span_ms=span_ms,
        mode=mode,
        kafka=kafka,
        candidates=list(candidates.values()),
        groups=sorted(groups.values(), key=GroupSummary.weight, reverse=True),
        rows=rows,
        by_client=by_client,
        comparisons=list(_compared(by_client, list(candidates.values()))),
        losses=losses,
        benefit=benefit,
        logged=logged or LoggedThrottle(),
    )


def _compared(
    by_client: Mapping[ClientQuota, Mapping[str, Row]], candidates: Sequence[CandidateSummary]
) -> Iterator[Comparison]:
    """
    Yield each candidate but the first beside the first.

    A client that a candidate does not limit is not throttled by it.
    """
    name_of = cache(spelled)
    for candidate in candidates[1:]:
        by_user: dict[str, list[Change]] = {}
        counts, unknown = dict.fromkeys(ThrottleChange, 0), 0
        for (user, client_id, quota_type), by_candidate in by_client.items():
            base, changed = CandidateSummary(name=candidates[0].name), CandidateSummary(name=candidate.name)
            for totals in (base, changed):
                if totals.name in by_candidate:
                    totals.add(by_candidate[totals.name])
                # the same in each candidate's row, and there also where this one has no row for want of a limit
                totals.requests = next(iter(by_candidate.values()))["requests"]
            change_of = change_between(base.muted_ms, changed.muted_ms)
            # a client that was held back would have sent more, and nobody knows whether the limit throttles that
            if change_of is ThrottleChange.ENDED and changed.held_back_requests:
                unknown += 1
            elif change_of is not None:
                counts[change_of] += 1
            if any(figure.difference(changed, base) for figure in COMPARED):
                change = Change(
                    name=name_of(user, client_id),
                    quota=spaced(quota_type),
                    base=base,
                    candidate=changed,
                    row=by_candidate.get(changed.name),
                )
                by_user.setdefault(user, []).append(change)
        users = [(_of_user(user, changes), sorted(changes, key=largest)) for user, changes in by_user.items()]
        yield Comparison(
            candidate=candidate,
            changes=counts,
            unknown=unknown,
            users=sorted(users, key=lambda user: largest(user[0])),
        )


def largest(change: Change) -> tuple[int, int, str]:
    """Return the key by which the largest changes are first."""
    refused = change.candidate.refused_mutations - change.base.refused_mutations
    return -abs(change.gained_ms), -abs(refused), change.name


def _of_user(user: str, changes: Sequence[Change]) -> Change:
    """Return the changes of a user's clients, added up."""
    base, changed = CandidateSummary(name=""), CandidateSummary(name="")
    for change in changes:
        for total, part in ((base, change.base), (changed, change.candidate)):
            total.requests += part.requests
            total.requests_of_unknown_size += part.requests_of_unknown_size
            total.mutations_of_unknown_size += part.mutations_of_unknown_size
            total.held_back_requests += part.held_back_requests
            total.mutations_held_back += part.mutations_held_back
            total.throttled_requests += part.throttled_requests
            total.muted_ms += part.muted_ms
            total.refused_mutations += part.refused_mutations
    return Change(name=spelled(user, None), quota="", base=base, candidate=changed, row=None)


def rule_of(row: Row) -> str:
    """Return the rule that decides a row, as `QuotaEntity.rule`: the row's level, with the names that the level has."""
    user, client_id = _SHAPES[row["level"]]
    return QuotaEntity(
        row["user"] if isinstance(user, str) else user, row["client_id"] if isinstance(client_id, str) else client_id
    ).rule


def group_of(row: Row) -> LimitGroup:
    """Return the clients that share the limit of a row."""
    user, client_id = _SHAPES[row["level"]]
    return LimitGroup(
        kind=_KINDS[row["quota_type"]],
        user=None if user is None else row["user"],
        client_id=None if client_id is None else row["client_id"],
    )
