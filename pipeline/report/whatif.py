"""What a what-if replay reports: its results added up by candidate and by group of clients that share a limit, and its page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from itertools import product
from typing import Any, Final
from xml.etree.ElementTree import Element

import pyarrow as pa

from quotascope.metrics import DEFAULT, LEVELS_LEGEND, QuotaEntity, QuotaType, spelled
from quotascope.pages.charts import ChartBar, Format, LimitLine, bar_chart, heat_map, key, line_chart, peak_kind
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import amount, counted, percent, period, seconds, shown, spaced

from ..blame.benefit import Benefit
from ..rates import GroupUsage, LimitGroup, rate
from ..releases import Followed
from ..replay import Mode

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
"""User and client-id of the rules of each level."""
_MEANINGS: Final = {
    Mode.OPEN_LOOP: "Open loop: requests arrive as logged, whatever the throttles. Real clients slow down, so these figures are upper bounds.",
    Mode.CLOSED_LOOP: "Closed loop: a throttled connection sends its next request later, as a muted channel makes it. A delayed request counts when it arrives.",
}
_UNLOGGED: Final = "Figures may be too low for request time, of which the log lacks a part."
_UNSIZED: Final = (
    "≥ marks figures to which requests of unknown size may add: Fetches that were throttled until their connection ended, and controller mutations "
    "of which the log lacks the number of partitions (`quotascope ingest --topics`). Differences are without them."
)
_SAVED: Final = {
    Mode.OPEN_LOOP: "Wait saved for others: the part of the queue times of clients that a candidate does not throttle. Usually an upper bound: requests above a limit never come.",
    Mode.CLOSED_LOOP: "Wait saved for others: the part of the queue times of clients that a candidate does not throttle, with the others' requests later.",
}
CHART_NOTES: Final = (
    "The area is the highest mean over 11 s, which is about what a broker compares with its limit; a controller mutation quota lets a burst above it pass. The line is the mean.",
    "Where a chart is empty, no request was logged: the client was idle, or the log has a gap.",
)
PAGE_NOTES: Final = (
    "Each broker enforces limits separately; a chart shows the broker with the highest peak.",
    *CHART_NOTES,
    "A client's share is the time in which it was throttled, as a part of the time in which it was active or throttled.",
)
"""Of charts and shares; the last of the notes, which the terminal leaves out."""
CHARTS: Final = 12
"""Groups that are drawn: those that are throttled longest."""
_WEEK: Final = "The highest peak in each hour of the week; gray hours are not in the history"
_FEWEST_HOURS: Final = 6
"""Of a week, in which requests were logged, for a map of its hours."""
_ROW_HEADS: Final = (
    "entity",
    "=quota",
    "candidate",
    "#limit",
    "rule",
    "#requests",
    "#throttled",
    "#throttled for",
    "#share",
    "#longest",
    "#delayed",
    "#refused",
    "#recovery",
)
_CHANGE_HEADS: Final = ("entity", "=quota")
_RULE_HEADS: Final = ("rule", "=quota", "candidate", "#limit")


@dataclass(slots=True, kw_only=True)
class CandidateSummary:
    """What one candidate would have done to all clients."""

    name: str
    limited: int = 0
    """Pairs of client and quota type that it limits and that used it."""
    requests: int = 0
    """Of all pairs that some candidate limits; a request counts under each quota type that it charges."""
    requests_of_unknown_size: int = 0
    """Of the pairs that it limits: Fetches that were throttled while logged and never answered, and mutations of an unknown number of partitions."""
    mutations_of_unknown_size: int = 0
    hit: int = 0
    """How many of them are throttled at all."""
    muted_ms: int = 0
    throttled_requests: int = 0
    worst_share: float = 0.0
    worst: str = ""
    """The client that is throttled for the largest share of its time."""
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
        self.requests += row["requests"]
        self.requests_of_unknown_size += row["requests_of_unknown_size"] or 0
        if row["quota_type"] == QuotaType.CONTROLLER_MUTATION.label:
            self.mutations_of_unknown_size += row["requests_of_unknown_size"] or 0
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
    """What rows of one candidate add up to."""
    totals = CandidateSummary(name="")
    for row in rows:
        totals.add(row)
    return totals


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _ms(time_ms: float) -> str:
    return seconds(time_ms / 1_000)


def _bytes(value: float) -> str:
    return f"{amount(value)}B"


def at_least(text: Callable[[float], str], value: float, unsized: int) -> str:
    """A figure with its unit; marked where requests of unknown size may add to it, and unknown where nothing else does."""
    if unsized and not value:
        return "unknown"
    return f"≥ {text(value)}" if unsized else text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A column of results, as the page, the terminal, JSON and docs/whatif.md have it."""

    key: str
    """The attribute of `CandidateSummary` and of JSON."""
    head: str
    text: Callable[[float], str]
    compared: bool = False
    """Whether candidates are compared with the base by it: less is better."""
    closed: bool = False
    """Whether only a closed loop measures it."""
    unsized: str = "requests_of_unknown_size"
    """The attribute that counts requests that may add to it; empty for none."""

    def of(self, totals: CandidateSummary) -> float | None:
        """Its value; None if it is unknown."""
        value: float | None = getattr(totals, self.key)
        return value

    def cell(self, totals: CandidateSummary) -> str:
        """Its value with its unit."""
        value, unsized = self.of(totals), getattr(totals, self.unsized) if self.unsized else 0
        return "unknown" if value is None else at_least(self.text, value, unsized)

    def difference(self, totals: CandidateSummary, base: CandidateSummary) -> float:
        """By how much it is more than under the base."""
        return (self.of(totals) or 0.0) - (self.of(base) or 0.0)

    def difference_cell(self, totals: CandidateSummary, base: CandidateSummary) -> str:
        """The difference with sign and unit; one of shares is in percentage points."""
        value = self.difference(totals, base)
        text = self.text(abs(value)).replace("%", "points")
        sign = "+" if value > 0 else "-" if value < 0 else ""
        return f"{sign}{text}"


THROTTLED_FOR: Final = Figure(key="muted_ms", head="throttled for", text=_ms, compared=True)
FIGURES: Final = (
    Figure(key="limited", head="limited", text=_count, unsized=""),
    Figure(key="hit", head="throttled", text=_count),
    THROTTLED_FOR,
    Figure(key="request_share", head="requests throttled", text=percent, compared=True),
    Figure(key="worst_share", head="worst share", text=percent),
    Figure(key="longest_ms", head="longest", text=_ms),
    Figure(key="delayed_bytes", head="delayed", text=_bytes),
    Figure(key="refused_mutations", head="refused", text=_count, compared=True, unsized="mutations_of_unknown_size"),
    Figure(key="recovery_ms", head="recovery", text=_ms),
    Figure(key="late_ms", head="later by", text=_ms, closed=True),
    Figure(key="unsent_requests", head="not sent", text=_count, closed=True),
    Figure(key="wait_saved", head="wait saved for others", text=percent, unsized=""),
)
"""All figures of candidates and groups, in the order of columns."""
COMPARED: Final = tuple(figure for figure in FIGURES if figure.compared)
_OF_CLIENT: Final = ("muted_ms", "worst_share", "longest_ms", "delayed_bytes", "refused_mutations", "recovery_ms")
"""Figures of a client, by their keys."""


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """The limits that candidates set for a group, and what they would do to it."""

    group: LimitGroup
    muted_ms: int = 0
    """Of all candidates and clients together."""
    amount: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """By candidate."""

    def weight(self) -> tuple[int, float]:
        """Throttled time, and usage as a part of the lowest limit: which groups are shown first."""
        lowest = min(self.limits.values())
        if lowest == 0.0:  # any usage is above it
            return self.muted_ms, math.inf if self.amount else 0.0
        return self.muted_ms, self.amount / lowest


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a candidate does to one client or user, and what the base does to it."""

    name: str
    """The entity."""
    quota: str
    """The quota type in words; empty for all of a user's."""
    base: CandidateSummary
    then: CandidateSummary
    row: Row | None
    """Under the candidate; None where it does not limit the client, and for a user."""

    @property
    def gained_ms(self) -> int:
        """By how much longer it is throttled."""
        return self.then.muted_ms - self.base.muted_ms

    @property
    def limit(self) -> tuple[str, str]:
        """Limit and rule under the candidate."""
        if self.row is None:
            return ("unlimited", "no rule") if self.quota else ("", "")
        return rate(group_of(self.row).kind, self.row["limit"]), rule_of(self.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate beside the base, the first one."""

    candidate: CandidateSummary
    worse: int = 0
    """Pairs of client and quota type that are throttled longer than under the base."""
    better: int = 0
    users: Sequence[tuple[Change, Sequence[Change]]] = field(default=())
    """Each user with a difference and its clients that have one; the largest first."""


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
    """Clients that share a limit, those that are throttled longest first, then those that use most of their limit."""
    rows: Sequence[Row]
    """Of the results, in the same order."""

    by_client: Mapping[ClientQuota, Mapping[str, Row]]
    """The rows by client and quota type, then by candidate; a candidate that does not limit the client has none."""
    comparisons: Sequence[Comparison] = ()
    """Of all candidates but the first."""
    benefit: Benefit | None = None
    """What they save others; None if no queue was looked at."""

    @property
    def figures(self) -> Sequence[Figure]:
        """Those that the mode measures."""
        return [figure for figure in FIGURES if self.closed or not figure.closed]

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
        saved = (_SAVED[self.mode], *self.benefit.notes) if self.benefit else ()
        unsized = (_UNSIZED,) if any(each.requests_of_unknown_size for each in self.candidates) else ()
        return (_MEANINGS[self.mode], _UNLOGGED, *unsized, self.kafka.note, *saved, *PAGE_NOTES)


def summary_of(  # noqa: PLR0913 - the last by name
    results: pa.Table,
    names: Sequence[str],
    source: str,
    span_ms: tuple[int, int],
    mode: Mode,
    kafka: Followed,
    *,
    benefit: Benefit | None = None,
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
        benefit: what the candidates save others.

    """
    # Those that are throttled longest first; equal ones by name, whatever engine did the work.
    rows = sorted(
        results.to_pylist(),
        key=lambda row: (-row["muted_ms"], -row["amount"], row["user"], row["client_id"], row["quota_type"]),
    )
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
    requests = sum(next(iter(found.values()))["requests"] for found in by_client.values())
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
        benefit=benefit,
    )


def _compared(
    by_client: Mapping[ClientQuota, Mapping[str, Row]], candidates: Sequence[CandidateSummary]
) -> Iterator[Comparison]:
    """Each candidate but the first beside the first; a client that a candidate does not limit is not throttled by it."""
    for candidate in candidates[1:]:
        by_user: dict[str, list[Change]] = {}
        for (user, client_id, quota_type), found in by_client.items():
            base, then = CandidateSummary(name=candidates[0].name), CandidateSummary(name=candidate.name)
            for totals in (base, then):
                if totals.name in found:
                    totals.add(found[totals.name])
                totals.requests = next(iter(found.values()))["requests"]
            if any(figure.difference(then, base) for figure in COMPARED):
                change = Change(
                    name=spelled(user, client_id),
                    quota=spaced(quota_type),
                    base=base,
                    then=then,
                    row=found.get(then.name),
                )
                by_user.setdefault(user, []).append(change)
        changes = [change for found in by_user.values() for change in found]
        users = [(_of_user(user, found), sorted(found, key=_largest)) for user, found in by_user.items()]
        yield Comparison(
            candidate=candidate,
            worse=sum(change.gained_ms > 0 for change in changes),
            better=sum(change.gained_ms < 0 for change in changes),
            users=sorted(users, key=lambda user: _largest(user[0])),
        )


def _largest(change: Change) -> tuple[int, int, str]:
    refused = change.then.refused_mutations - change.base.refused_mutations
    return -abs(change.gained_ms), -abs(refused), change.name


def _of_user(user: str, changes: Sequence[Change]) -> Change:
    """The changes of a user's clients, added up."""
    base, then = CandidateSummary(name=""), CandidateSummary(name="")
    for change in changes:
        for total, part in ((base, change.base), (then, change.then)):
            total.requests += part.requests
            total.requests_of_unknown_size += part.requests_of_unknown_size
            total.mutations_of_unknown_size += part.mutations_of_unknown_size
            total.throttled_requests += part.throttled_requests
            total.muted_ms += part.muted_ms
            total.refused_mutations += part.refused_mutations
    return Change(name=spelled(user, None), quota="", base=base, then=then, row=None)


def rule_of(row: Row) -> str:
    """The rule that decides a row: its level, with the names of the row where it has names (`QuotaEntity.rule`)."""
    user, client_id = _SHAPES[row["level"]]
    return QuotaEntity(
        row["user"] if isinstance(user, str) else user, row["client_id"] if isinstance(client_id, str) else client_id
    ).rule


def group_of(row: Row) -> LimitGroup:
    """The clients that share the limit of a row."""
    user, client_id = _SHAPES[row["level"]]
    return LimitGroup(
        kind=_KINDS[row["quota_type"]],
        user=None if user is None else row["user"],
        client_id=None if client_id is None else row["client_id"],
    )


def whatif_page(summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo = UTC) -> str:
    """The text of a file; names are untrusted, and nothing but text in it."""
    return framed("What if", _sections(summary, usages, zone))


def _sections(summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo) -> Iterator[Element]:
    yield element("h1", "What if")
    yield element("p", f"{period(summary.source, *summary.span_ms, zone)}, {summary.mode_name}", class_="where")
    yield element("p", headline(summary), class_="headline")
    yield from _differences(summary)
    yield element("h2", "Candidates")
    heads = ("candidate", *(f"#{figure.head}" for figure in summary.figures), "worst client")
    rows: list[Sequence[Child]] = [
        (shown(each.name), *(figure.cell(each) for figure in summary.figures), each.worst)
        for each in summary.candidates
    ]  # fmt: skip
    yield table(heads, rows)
    yield element("h2", "Throttled time by candidate")
    bars = [
        ChartBar(name=each.name, value=each.muted_ms, text=THROTTLED_FOR.cell(each), color=n)
        for n, each in enumerate(summary.candidates)
    ]
    yield bar_chart(bars, "Throttled time by candidate")
    yield from _by_rule(summary)
    yield element("h2", "Throttled clients")
    rows = list(_by_client(summary))
    yield table(_ROW_HEADS, rows) if rows else element("p", headline(summary))
    yield element("p", LEVELS_LEGEND, class_="where")
    yield from _charts(summary, usages, zone)
    yield element("ul", *(element("li", note) for note in summary.notes))


def headline(summary: ReplaySummary) -> str:
    """How the candidates differ from the base; what one alone would have done; in one sentence or two."""
    base = summary.candidates[0]
    if not any(each.limited for each in summary.candidates):
        return "No candidate limits any client of this history."
    if not any(each.hit for each in summary.candidates):
        unsized = any(each.requests_of_unknown_size for each in summary.candidates)
        return f"No candidate would have throttled any client{' for requests of known size' if unsized else ''}."
    if not summary.comparisons:
        return f"{_did(base)}."
    differing = [each.candidate for each in summary.comparisons if each.users]
    if not differing:
        return f"{_did(base)}. No other candidate would have throttled any client differently."
    ends = {
        "Least": min(differing, key=lambda each: each.muted_ms),
        "Most": max(differing, key=lambda each: each.muted_ms),
    }
    if ends["Least"] is ends["Most"]:
        ends = {"Then": ends["Least"]}
    sentences = [
        f"{word}: “{shown(each.name)}”, {THROTTLED_FOR.cell(each)} ({THROTTLED_FOR.difference_cell(each, base)})"
        for word, each in ends.items()
    ]
    if alike := len(summary.comparisons) - len(differing):
        sentences.append(f"As the base: {counted(alike, 'candidate')}")
    return f"Base: {'. '.join((_did(base), *sentences))}."


def _did(candidate: CandidateSummary) -> str:
    least = "at least " if candidate.requests_of_unknown_size else ""
    pairs = f"{least}{candidate.hit:,} of {candidate.limited:,} limited quotas of clients"
    return f"“{shown(candidate.name)}” would have throttled {pairs} for {least}{_ms(candidate.muted_ms)}"


def _differences(summary: ReplaySummary) -> Iterator[Element]:
    """Each candidate against the base, and whom it throttles more or less, by user."""
    if not summary.comparisons:
        return
    base = summary.candidates[0]
    yield element("h2", f"Difference to “{shown(base.name)}”")
    compared = [f"#{figure.head}" for figure in COMPARED]
    heads = ("candidate", "#clients worse", "#clients better", *compared)
    yield table(
        heads,
        [
            (
                shown(each.candidate.name),
                _count(each.worse),
                _count(each.better),
                *(difference(figure, each.candidate, base) for figure in COMPARED),
            )
            for each in summary.comparisons
        ],
    )
    yield element("h2", "Clients that are throttled more, or less")
    changed = [each for each in summary.comparisons if each.users]
    if not changed:
        yield element("p", "No client is throttled for longer or shorter than under the base.")
    changed.sort(key=lambda each: _largest(each.users[0][0]))
    for each in changed[:CHARTS]:
        yield element("h3", shown(each.candidate.name))
        yield _changes(each)
    if (left := len(changed) - CHARTS) > 0:
        yield element(
            "p", f"{counted(left, 'more candidate')} with smaller differences: see CSV or JSON.", class_="where"
        )


def _changes(comparison: Comparison) -> Element:
    """A user with all of its clients in bold, then these; a user with one client has no row of its own."""
    changes = [change for _, clients in comparison.users for change in clients]
    figures = [figure for figure in COMPARED if any(figure.difference(each.then, each.base) for each in changes)]
    rows: list[Sequence[Child]] = []
    for user, clients in comparison.users:
        for change in (user, *clients) if len(clients) > 1 else clients:
            cells: list[Child] = [change.name, change.quota or "all"]
            for figure in figures:
                cells.append(figure.cell(change.then))
                cells.append(difference(figure, change.then, change.base))
            cells += change.limit
            bold = change is user
            rows.append([element("b", cell) if bold and isinstance(cell, str) and cell else cell for cell in cells])
    more = (head for figure in figures for head in (f"#{figure.head}", "#difference"))
    return table((*_CHANGE_HEADS, *more, "#limit", "rule"), rows)


def difference(figure: Figure, totals: CandidateSummary, base: CandidateSummary) -> Element:
    """A difference, colored by whether it is better or worse."""
    value = figure.difference(totals, base)
    kind = "worse" if value > 0 else "better" if value < 0 else "same"
    return element("span", figure.difference_cell(totals, base), class_=kind)


def _by_rule(summary: ReplaySummary) -> Iterator[Element]:
    """What each rule does to its clients together under each candidate; only rules that throttle under some candidate."""
    found: dict[tuple[str, str], dict[tuple[str, str], CandidateSummary]] = {}
    for row in summary.rows:
        rule = (rule_of(row), spaced(row["quota_type"]))
        key = (row["candidate"], rate(group_of(row).kind, row["limit"]))
        by_candidate = found.setdefault(rule, {})
        by_candidate.setdefault(key, CandidateSummary(name="")).add(row)
    figures = [figure for figure in summary.figures if figure.key not in {"worst_share", "wait_saved"}]
    order = [each.name for each in summary.candidates]
    rows = [
        (*rule, shown(name), limit, *(figure.cell(totals) for figure in figures))
        for rule, by_candidate in found.items()
        if any(totals.hit for totals in by_candidate.values())
        for (name, limit), totals in sorted(by_candidate.items(), key=lambda item: order.index(item[0][0]))
    ]  # fmt: skip
    if rows:
        yield element("h2", "Rules")
        yield table((*_RULE_HEADS, *(f"#{figure.head}" for figure in figures)), rows)


def _by_client(summary: ReplaySummary) -> Iterator[Sequence[Child]]:
    """What each candidate does to a client, one below the other."""
    for (user, client_id, quota_type), found in summary.by_client.items():
        for row in found.values():
            unsized = row["requests_of_unknown_size"] or 0
            if not (row["throttled_requests"] or unsized):
                continue
            totals = totals_of([row])
            yield (
                spelled(user, client_id),
                spaced(quota_type),
                shown(row["candidate"]),
                rate(group_of(row).kind, row["limit"]),
                rule_of(row),
                f"{row['requests']:,}",
                at_least(_count, row["throttled_requests"], unsized),
                *(figure.cell(totals) for figure in FIGURES if figure.key in _OF_CLIENT),
            )


def _charts(summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo) -> Iterator[Element]:
    groups = [each for each in summary.groups[:CHARTS] if each.group in usages]
    if not groups:
        return
    yield element("h2", "Usage against limits")
    colors = {each.name: n for n, each in enumerate(summary.candidates)}
    for each in groups:
        yield from group_section(each, usages[each.group], colors, zone)
    left = len(summary.groups) - len(groups)
    if left:
        yield element(
            "p", f"{counted(left, 'more group')} with less throttled time or usage: no chart.", class_="where"
        )


def group_section(
    summary: GroupSummary, drawn: GroupUsage, colors: Mapping[str, int], zone: tzinfo
) -> Iterator[Element]:
    """
    A heading, a line chart with its legend, and a heat map where the history has at least six hours of the week.

    Args:
        summary: the group and its limits by candidate.
        drawn: its usage.
        colors: number of the color of each candidate, in the order of the legend.
        zone: time zone of the labels below the time axis.

    """
    group = summary.group
    unit = partial(rate, group.kind)
    limits = [
        LimitLine(name=name, value=summary.limits[name], color=color)
        for name, color in colors.items()
        if name in summary.limits
    ]
    chart, left_out = line_chart(drawn.usage, limits, unit, zone)
    yield element("h3", f"{spelled(group.user, group.client_id)}: {spaced(group.kind.label)}")
    node = "controller" if group.kind is QuotaType.CONTROLLER_MUTATION else "broker"
    yield element("p", f"on {node} {shown(drawn.broker)}", class_="where")
    yield element("p", *_legend(drawn, limits, unit), class_="legend")
    yield chart
    for limit in left_out:
        text = f"Far above: {shown(limit.name)}, {unit(limit.value)}"
        yield element("p", text, class_="where")
    if sum(map(math.isfinite, drawn.by_hour)) >= _FEWEST_HOURS:
        yield element("p", _WEEK, class_="where above")
        yield heat_map(drawn.by_hour, unit, _WEEK)


def _legend(drawn: GroupUsage, limits: Sequence[LimitLine], unit: Format) -> Iterator[Child]:
    if drawn.usage.mean:
        yield key("used, mean", element("path", class_="mean", d="M0 5H22"))
    yield key("peak", element("rect", class_=peak_kind(drawn.usage), width=22, height=10))
    by_value: dict[float, list[LimitLine]] = {}
    for limit in limits:
        by_value.setdefault(limit.value, []).append(limit)
    for value, alike in by_value.items():
        names = ", ".join(shown(limit.name, 60) for limit in alike)
        mark = alike[-1].mark(d="M0 5H22")  # the last is drawn above the others
        yield key(f"{unit(value)}: {names}", mark)
