"""The page of a what-if replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.charts import ChartBar, bar_chart
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import counted, moment, seconds, shown

from .charts import group_section
from .summary import CandidateSummary, LimitGroup, ReplaySummary, Row, group_of
from .usage import GroupUsage
from .words import amount, percent, rate, spaced

CHARTS: Final = 12
"""Groups that are drawn: those that are throttled longest."""
_HEADS: Final = ("candidate", "#limited", "#throttled", "#throttled for", "#worst share", "worst client", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip
_CLOSED: Final = ("#later by", "#not sent")
_ROW_HEADS: Final = ("user", "client id", "=quota", "candidate", "#limit", "=level", "#requests", "#throttled", "#throttled for", "#share", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip


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
