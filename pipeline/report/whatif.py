"""What a what-if replay reports: its results added up by candidate and by group of clients that share a limit, and its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Final
from xml.etree.ElementTree import Element

import pyarrow as pa

from quotascope.metrics import Level, QuotaType
from quotascope.pages.charts import ChartBar, bar_chart
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import counted, moment, seconds, shown

from ..releases import Followed
from ..replay import Mode
from .usage import GroupSummary, GroupUsage, LimitGroup, group_section
from .words import amount, percent, rate, spaced, who

Row = Mapping[str, Any]
"""A row of `quotascope.pipeline.replay.RESULTS` as Python values."""

_OF_USER: Final = {Level.USER.value, Level.DEFAULT_USER.value}
_OF_CLIENT: Final = {Level.CLIENT.value, Level.DEFAULT_CLIENT.value}
_KINDS: Final = {kind.label: kind for kind in QuotaType}
_NAMES: Final = ("user", "client_id", "quota_type")
_MEANINGS: Final = {
    Mode.OPEN_LOOP: "Open loop: requests arrive as logged, whatever the throttles. Real clients slow down, so these figures are upper bounds.",
    Mode.CLOSED_LOOP: "Closed loop: a throttled connection sends its next request later, as a muted channel makes it. A delayed request counts when it arrives.",
}
_NOTES: Final = (
    "Each broker enforces limits separately; a chart shows the broker with the highest peak.",
    "The area is the highest mean over 11 s, which is about what a broker compares with its limit; the line is the mean.",
    "Where a chart is empty, no request was logged: the client was idle, or the log has a gap.",
    "A client's share is the time in which it was throttled, as a part of the time in which it was active or throttled.",
)
CHARTS: Final = 12
"""Groups that are drawn: those that are throttled longest."""
_HEADS: Final = ("candidate", "#limited", "#throttled", "#throttled for", "#worst share", "worst client", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip
_CLOSED: Final = ("#later by", "#not sent")
_ROW_HEADS: Final = ("user", "client id", "=quota", "candidate", "#limit", "=level", "#requests", "#throttled", "#throttled for", "#share", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip


@dataclass(slots=True, kw_only=True)
class CandidateSummary:
    """What one candidate would have done to all clients."""

    name: str
    limited: int = 0
    """Pairs of client and quota type that it limits and that used it."""
    hit: int = 0
    """How many of them are throttled at all."""
    muted_ms: int = 0
    throttled_requests: int = 0
    worst_share: float = 0.0
    worst: str = ""
    """The client that is throttled for the largest share of its time."""
    longest_ms: int = 0
    delayed_bytes: int = 0
    rejected_mutations: int = 0
    recovery_ms: int = 0
    late_ms: int = 0
    unsent_requests: int = 0

    def add(self, row: Row) -> None:
        """Count one row of the candidate."""
        self.limited += 1
        self.hit += row["throttled_requests"] > 0
        self.muted_ms += row["muted_ms"]
        self.throttled_requests += row["throttled_requests"]
        self.delayed_bytes += row["delayed_bytes"]
        self.rejected_mutations += row["rejected_mutations"]
        self.unsent_requests += row["unsent_requests"]
        self.longest_ms = max(self.longest_ms, row["longest_throttle_ms"])
        self.recovery_ms = max(self.recovery_ms, row["recovery_ms"])
        self.late_ms = max(self.late_ms, row["late_ms"])
        if row["throttled_share"] > self.worst_share:
            self.worst_share = row["throttled_share"]
            self.worst = who(row["user"], row["client_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What the report on a replay shows, as plain values."""

    source: str
    """Where the history is."""
    span_ms: tuple[int, int]
    """Its first and last decision: ms since 1970."""
    mode: Mode
    kafka: Followed
    """The release that throttle times follow."""
    candidates: Sequence[CandidateSummary]
    groups: Sequence[GroupSummary]
    """Clients that share a limit, those that are throttled longest first."""
    rows: Sequence[Row]
    """Of the results, in the same order."""

    @property
    def closed(self) -> bool:
        """Whether throttled clients send later."""
        return self.mode is Mode.CLOSED_LOOP

    @property
    def mode_name(self) -> str:
        """The mode in words."""
        return self.mode.value.replace("_", " ")

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know about these figures, one sentence or two each."""
        return (_MEANINGS[self.mode], self.kafka.note, *_NOTES)


def summary_of(
    results: pa.Table,
    names: Sequence[str],
    source: str,
    span_ms: tuple[int, int],
    mode: Mode,
    kafka: Followed,
) -> ReplaySummary:
    """
    Add up the results of a replay.

    Args:
        results: `quotascope.pipeline.replay.RESULTS`, brokers added up.
        names: of the candidates, in their order.
        source: where the history is.
        span_ms: its first and last decision.
        mode: of the replay.
        kafka: the release that throttle times follow.

    """
    # Those that are throttled longest first; equal ones by name, whatever engine did the work.
    rows = sorted(
        results.to_pylist(),
        key=lambda row: (
            -row["muted_ms"],
            -row["amount"],
            *(row[name] for name in _NAMES),
        ),
    )
    candidates = {name: CandidateSummary(name=name) for name in names}
    for row in rows:
        candidates[row["candidate"]].add(row)
    return ReplaySummary(
        source=source,
        span_ms=span_ms,
        mode=mode,
        kafka=kafka,
        candidates=list(candidates.values()),
        groups=_by_group(rows),
        rows=rows,
    )


def _by_group(rows: Iterable[Row]) -> list[GroupSummary]:
    """The groups of all candidates, those that are throttled longest first, then those that use most of their limit."""
    found: dict[LimitGroup, GroupSummary] = {}
    for row in rows:
        group = group_of(row)
        summary = found.setdefault(group, GroupSummary(group=group))
        summary.muted_ms += row["muted_ms"]
        summary.amount += row["amount"]
        summary.limits[row["candidate"]] = row["limit"]
    return sorted(found.values(), key=GroupSummary.weight, reverse=True)


def group_of(row: Row) -> LimitGroup:
    """The clients that share the limit of a row."""
    kind, user, client_id = _KINDS[row["quota_type"]], row["user"], row["client_id"]
    if row["level"] in _OF_USER:
        return LimitGroup(kind, user, None)
    if row["level"] in _OF_CLIENT:
        return LimitGroup(kind, None, client_id)
    return LimitGroup(kind, user, client_id)


def whatif_page(
    summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo = UTC
) -> str:
    """The text of a file; names are untrusted, and nothing but text in it."""
    return framed("What if", _sections(summary, usages, zone))


def _sections(
    summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo
) -> Iterator[Element]:
    begin, end = (moment(time, zone) for time in summary.span_ms)
    period = f"{shown(summary.source, 200)}, {begin} to {end}, {summary.mode_name}"
    yield element("h1", "What if")
    yield element("p", period, class_="where")
    yield element("p", headline(summary), class_="headline")
    yield element("h2", "Candidates")
    heads = _HEADS + (_CLOSED if summary.closed else ())
    yield table(heads, [_candidate(each, summary) for each in summary.candidates])
    yield element("h2", "Throttled time by candidate")
    bars = [
        ChartBar(name=each.name, value=each.muted_ms, text=_ms(each.muted_ms), color=n)
        for n, each in enumerate(summary.candidates)
    ]
    yield bar_chart(bars, "Throttled time by candidate")
    yield element("h2", "Throttled clients")
    rows = list(_by_client(summary))
    yield table(_ROW_HEADS, rows) if rows else element("p", headline(summary))
    yield from _charts(summary, usages, zone)
    yield element("ul", *(element("li", note) for note in summary.notes))


def headline(summary: ReplaySummary) -> str:
    """What the mildest and the strictest candidate would have done, in one sentence."""
    mildest, *others = sorted(summary.candidates, key=lambda each: each.muted_ms)
    if not any(each.limited for each in summary.candidates):
        return "No candidate limits any client of this history."
    if not any(each.hit for each in summary.candidates):
        return "No candidate would have throttled any client."
    if not others:
        return f"{_did(mildest)}."
    return f"Mildest: {_did(mildest)}. Strictest: {_did(others[-1])}."


def _did(candidate: CandidateSummary) -> str:
    pairs = f"{candidate.hit:,} of {candidate.limited:,} limited quotas of clients"
    return f"“{shown(candidate.name)}” would have throttled {pairs} for {_ms(candidate.muted_ms)}"


def _ms(time_ms: int) -> str:
    return seconds(time_ms / 1_000)


def _candidate(candidate: CandidateSummary, summary: ReplaySummary) -> Sequence[Child]:
    cells = (
        shown(candidate.name),
        f"{candidate.limited:,}",
        f"{candidate.hit:,}",
        _ms(candidate.muted_ms),
        percent(candidate.worst_share),
        candidate.worst,
        _ms(candidate.longest_ms),
        f"{amount(candidate.delayed_bytes)}B",
        f"{candidate.rejected_mutations:,}",
        _ms(candidate.recovery_ms),
    )
    late = (_ms(candidate.late_ms), f"{candidate.unsent_requests:,}")
    return cells + (late if summary.closed else ())


def _by_client(summary: ReplaySummary) -> Iterator[Sequence[Child]]:
    """What each candidate does to a client, one below the other; the client's names stand in its first row only."""
    hit: dict[tuple[str, str, str], list[Row]] = {}
    for row in summary.rows:
        if row["throttled_requests"]:
            key = (row["user"], row["client_id"], row["quota_type"])
            hit.setdefault(key, []).append(row)
    for (user, client_id, quota_type), rows in hit.items():
        names = [shown(user), shown(client_id), spaced(quota_type)]
        for row in rows:
            yield (
                *names,
                shown(row["candidate"]),
                rate(group_of(row).kind, row["limit"]),
                spaced(row["level"]),
                f"{row['requests']:,}",
                f"{row['throttled_requests']:,}",
                _ms(row["muted_ms"]),
                percent(row["throttled_share"]),
                _ms(row["longest_throttle_ms"]),
                f"{amount(row['delayed_bytes'])}B",
                f"{row['rejected_mutations']:,}",
                _ms(row["recovery_ms"]),
            )
            names = ["", "", ""]


def _charts(
    summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo
) -> Iterator[Element]:
    groups = [each for each in summary.groups[:CHARTS] if each.group in usages]
    if not groups:
        return
    yield element("h2", "Usage against limits")
    colors = {each.name: n for n, each in enumerate(summary.candidates)}
    for each in groups:
        yield from group_section(each, usages[each.group], colors, zone)
    left = len(summary.groups) - len(groups)
    if left:
        yield element("p", f"{counted(left, 'more group')} with less throttled time or usage: no chart.", class_="where")  # fmt: skip
