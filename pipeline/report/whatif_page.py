"""The page of a what-if replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.charts import ChartBar, bar_chart
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import counted, moment, seconds, shown

from .account import Account
from .charts import group_section
from .rollups import Drawn
from .summary import CandidateSummary, Group, Row, group_of
from .words import amount, percent, rate, spaced

CHARTS: Final = 12
"""Groups that are drawn: those that are throttled longest."""
_HEADS: Final = ("candidate", "#limited", "#throttled", "#throttled for", "#worst share", "whose", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip
_CLOSED: Final = ("#later by", "#not sent")
_ROW_HEADS: Final = ("user", "client id", "=quota", "candidate", "#limit", "=level", "#requests", "#throttled", "#for", "#share", "#longest", "#delayed", "#rejected", "#recovery")  # fmt: skip


def whatif_page(
    account: Account, usages: Mapping[Group, Drawn], zone: tzinfo = UTC
) -> str:
    """The text of a file; names of strangers are text in it and nothing else."""
    return framed("What if", _sections(account, usages, zone))


def _sections(
    account: Account, usages: Mapping[Group, Drawn], zone: tzinfo
) -> Iterator[Element]:
    begin, end = account.span_ms
    yield element("h1", "What if")
    period = f"{shown(account.source, 200)}, {moment(begin, zone)} to {moment(end, zone)}, {account.mode_told}"
    yield element("p", period, class_="where")
    yield element("p", headline(account), class_="headline")
    yield from _candidates(account)
    yield from _hit(account)
    yield from _charts(account, usages, zone)
    yield element("ul", *(element("li", note) for note in account.notes))


def headline(account: Account) -> str:
    """What the mildest and the hardest candidate would have done, in one sentence."""
    told = sorted(account.candidates, key=lambda each: each.muted_ms)
    if not any(each.limited for each in told):
        return (
            "No candidate limits any client of this history: all of them are unlimited."
        )
    if not any(each.hit for each in told):
        return "No candidate would have throttled any client."
    if len(told) == 1:
        return f"{_did(told[0])}."
    return f"From {_did(told[0])} to {_did(told[-1])}."


def _did(candidate: CandidateSummary) -> str:
    pairs = f"{candidate.hit:,} of {candidate.limited:,} limited"
    return f"“{shown(candidate.name)}” ({pairs}, throttled {seconds(candidate.muted_ms / 1_000)})"


def _candidates(account: Account) -> Iterator[Element]:
    yield element("h2", "Candidates")
    heads = _HEADS + (_CLOSED if account.closed else ())
    rows = [_candidate(each, account) for each in account.candidates]
    yield table(heads, rows)
    yield element("h2", "Throttled time by candidate")
    bars = [
        ChartBar(
            name=each.name,
            value=each.muted_ms,
            text=seconds(each.muted_ms / 1_000),
            color=number,
        )
        for number, each in enumerate(account.candidates)
    ]
    yield bar_chart(bars, "Throttled time by candidate")


def _candidate(candidate: CandidateSummary, account: Account) -> Sequence[Child]:
    cells = (
        shown(candidate.name),
        f"{candidate.limited:,}",
        f"{candidate.hit:,}",
        seconds(candidate.muted_ms / 1_000),
        percent(candidate.worst_share),
        candidate.worst,
        seconds(candidate.longest_ms / 1_000),
        f"{amount(candidate.delayed_bytes)}B",
        f"{candidate.rejected_mutations:,}",
        seconds(candidate.recovery_ms / 1_000),
    )
    late = (seconds(candidate.late_ms / 1_000), f"{candidate.unsent_requests:,}")
    return cells + (late if account.closed else ())


def _hit(account: Account) -> Iterator[Element]:
    yield element("h2", "Who would be hit")
    rows = list(_by_client(account))
    if rows:
        yield table(_ROW_HEADS, rows)
    else:
        yield element("p", headline(account))


def _by_client(account: Account) -> Iterator[Sequence[Child]]:
    """What each candidate does to a client, one below the other; names are told once."""
    hit: dict[tuple[str, str, str], list[Row]] = {}
    for row in account.rows:
        if row["throttled_requests"]:
            key = (row["user"], row["client_id"], row["quota_type"])
            hit.setdefault(key, []).append(row)
    for (user, client_id, quota_type), rows in hit.items():
        names = [shown(user), shown(client_id), spaced(quota_type)]
        for number, row in enumerate(rows):
            yield (*(names if number == 0 else ("", "", "")), *_row(row))


def _row(row: Row) -> Sequence[Child]:
    return (
        shown(row["candidate"]),
        rate(group_of(row).kind, row["limit"]),
        spaced(row["level"]),
        f"{row['requests']:,}",
        f"{row['throttled_requests']:,}",
        seconds(row["muted_ms"] / 1_000),
        percent(row["throttled_share"]),
        seconds(row["longest_throttle_ms"] / 1_000),
        f"{amount(row['delayed_bytes'])}B",
        f"{row['rejected_mutations']:,}",
        seconds(row["recovery_ms"] / 1_000),
    )


def _charts(
    account: Account, usages: Mapping[Group, Drawn], zone: tzinfo
) -> Iterator[Element]:
    shown_groups = [each for each in account.groups[:CHARTS] if each.group in usages]
    if not shown_groups:
        return
    yield element("h2", "Usage against limits")
    colors = {each.name: n for n, each in enumerate(account.candidates)}
    for each in shown_groups:
        yield from group_section(each, usages[each.group], colors, zone)
    left = len(account.groups) - len(shown_groups)
    if left:
        yield element("p", f"{counted(left, 'more group')} with less in them are not drawn.", class_="where")  # fmt: skip
