"""The report of a bill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any, Final

from quotascope.metrics.catalog.teams import UNDECIDED
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.baseline import legend_of_bounds
from quotascope.pages.report import TERMINAL_ROWS, Cell, Mark, Report, Rows
from quotascope.pages.words import amount, counted, moment, percent, shown
from quotascope.quotas.team_finder import team_words

from .charges import DIGITS, Bill, Charge, has_estimate, has_lower_bound
from .focus import decimal
from .usage import ClusterUse

_CENT: Final = Decimal("0.01")
_HEADS: Final = ("team", "#in", "#price in", "#out", "#price out", "#cost", "contact")
NOTES: Final = (
    (
        "A month begins and ends in UTC. in: bytes produced; out: bytes fetched, both as quotas count them: requests "
        "and responses of clients, without the copies between brokers. A price is for a GB, 10^9 bytes."
    ),
    (
        "A cost is bytes times price with all digits. Here it is rounded to hundredths (half to even), and a total is "
        "the sum of the exact costs: CSV and JSON have these."
    ),
    (
        "Hours are those of the node that was seen least: with samples, or with a request in each quarter of an hour. "
        "What was used in other hours is unknown, and in no figure."
    ),
)


def report(bill: Bill, *, limit: int = TERMINAL_ROWS) -> Report:
    """
    Report the costs of the teams, with a table for each cluster.

    Args:
        bill: bill.
        limit: number of teams of a cluster that a terminal shows.

    """
    return Report(
        title=f"Cost of {bill.month.name}",
        where="; ".join(shown(use.source, 200) for use in bill.uses),
        headline=list(_headline(bill)),
        caveats=list(caveats(bill)),
        blocks=[_table(bill, use, limit) for use in bill.uses],
        notes=NOTES,
    )


def _headline(bill: Bill) -> Iterator[str]:
    """Yield the total, and the bytes without a price, if any, a sentence each."""
    total = bill.total()
    teams = {charge.team for charge in bill.charges if charge.cost is not None}
    if total is None:
        yield f"No team has a cost: {_lack(bill)}."
    else:
        mark = ("at least " if bill.is_lower_bound() else "") + ("about " if bill.is_approximate() else "")
        yield f"{counted(len(teams), 'team')}: {mark}{_rounded(total)} {bill.currency}."
    others = [charge for charge in bill.charges if charge.price is None]
    unpriced = sum(charge.amount or 0 for charge in others)
    if unpriced:
        mark = "At least " if any(charge.at_least or charge.amount is None for charge in others) else ""
        yield f"{mark}{amount(unpriced)}B have no price: of entities without a team, or of teams without a price."


def _lack(bill: Bill) -> str:
    """Return the reason why there is no total."""
    if any(charge.price is not None for charge in bill.charges):
        return "how much was used is unknown"
    if bill.charges:
        return "no price is set"
    return _nothing(bill.uses)


def _nothing(uses: Sequence[ClusterUse]) -> str:
    """Return the meaning of an empty table."""
    seen = any(use.seen_s for use in uses)
    return "nothing was used in the hours that were seen" if seen else "nothing was seen of this month"


def caveats(bill: Bill) -> Iterator[str]:
    """Yield the reasons why figures are incomplete, bounds or approximate, a sentence or two each."""
    if not bill.ended:
        yield f"{bill.month.name} has not ended: these are its costs up to {moment(1_000 * bill.now_s)}, not a bill."
    for use in bill.uses:
        passed_hours = (use.until_s - bill.month.span_s[0]) / 3_600
        seen_hours = use.seen_s / 3_600
        share = f" ({percent(seen_hours / passed_hours)} of those that have passed)" if passed_hours > 0 else ""
        yield (
            f"Of cluster {shown(use.cluster)}, {_hours(seen_hours)} of {bill.month.hours:.0f} hours of the month were "
            f"seen{share}."
        )
        yield from use.caveats
    yield from legend_of_bounds(dict.fromkeys(_reasons_of_bounds(bill)))
    if any(charge.amount is None for charge in bill.charges):
        yield "unknown: there was usage, and no sample or size of it."
    if any(charge.approximate for charge in bill.charges):
        yield "≈: a sum of rates at scrapes, which stand for the time between them."
    if any(charge.team == UNDECIDED for charge in bill.charges):
        yield "unknown team: names that the exporter does not remember, so that no pattern can decide."


def _reasons_of_bounds(bill: Bill) -> Iterator[str]:
    """Yield the reasons why costs and amounts are lower bounds; clusters may have the same ones."""
    uses = [use for use in bill.uses if bill.charges_of(use)]
    if any(use.lacks_hours(bill.month) for use in uses):
        yield "what was used in hours that were not seen is unknown"
    for use in uses:
        yield from use.bounds
    if bill.total() is not None and any(charge.price is not None and charge.amount is None for charge in bill.charges):
        yield "a cost of an unknown amount is in no total"


def _hours(hours: float) -> str:
    """Return a number of hours: with one decimal from 1 on, and with two digits below."""
    if 0 < hours < 1:
        return f"{hours:.2g}"
    return f"{hours:.1f}".removesuffix(".0")


def _table(bill: Bill, use: ClusterUse, limit: int) -> Rows:
    """Return the table of a cluster: the total first, then teams by cost, the highest first."""
    cluster_charges = bill.charges_of(use)
    by_team: dict[str, dict[QuotaType, Charge]] = {}
    for charge in cluster_charges:
        by_team.setdefault(charge.team, {})[charge.kind] = charge
    costs = {team: bill.total(charges.values()) for team, charges in by_team.items()}
    ordered = sorted(by_team, key=lambda team: (costs[team] is None, -(costs[team] or 0)))
    rows: list[Sequence[str | Cell]] = [_row(bill, team, by_team[team]) for team in ordered]
    total = bill.total(cluster_charges)
    shares = [_share(costs[team], total) for team in ordered]
    if total is not None:
        cells = ["all teams", "", "", "", "", _cost(bill, cluster_charges, use), ""]
        rows.insert(0, [Cell(text, Mark.TOTAL) for text in cells])
        shares.insert(0, None)
    return Rows(
        title=f"Cluster {shown(use.cluster)}",
        heads=_HEADS,
        rows=rows,
        shares=shares,
        empty=f"{_nothing([use]).capitalize()}.",
        page_only=("contact",),
        terminal_rows=limit + (total is not None),
    )


def _share(cost: Decimal | None, total: Decimal | None) -> float | None:
    """Return a cost as a part of the total; None without a cost or with a total of 0."""
    return float(cost) / float(total) if total and cost is not None else None


def _row(bill: Bill, team: str, charges: dict[QuotaType, Charge]) -> Sequence[str]:
    """Return the cells of a team, in the order of `_HEADS`, from its charges by direction."""
    cells = []
    for kind in (QuotaType.PRODUCE, QuotaType.FETCH):
        charge = charges.get(kind)
        if charge is None:
            cells += ["-", ""]
            continue
        used_text = "unknown" if charge.amount is None else f"{_mark(charge)}{amount(charge.amount)}B"
        cells += [used_text, "" if charge.price is None else f"{charge.price:f}"]
    contact = next((charge.contact for charge in charges.values() if charge.contact), "")
    return (team_words(team), *cells, _cost(bill, list(charges.values())), shown(contact, 100))


def _mark(charge: Charge) -> str:
    """Return the marks of an amount that is a lower bound or an estimate; empty for an exact one."""
    return ("≥ " if charge.at_least else "") + ("≈ " if charge.approximate else "")


def _cost(bill: Bill, charges: Sequence[Charge], use: ClusterUse | None = None) -> str:
    """Return the cost of some charges with its marks; `use` is given if they are all charges of a cluster."""
    priced = [charge for charge in charges if charge.price is not None]
    total = bill.total(priced)
    if total is None:
        return "unknown" if priced else "no price"
    at_least = has_lower_bound(priced) or (use is not None and use.lacks(bill.month))
    return f"{'≥ ' if at_least else ''}{'≈ ' if has_estimate(priced) else ''}{_rounded(total)} {bill.currency}"


def _rounded(money: Decimal) -> str:
    """Return money in hundredths for people; an amount that would round to 0 is `< 0.01`."""
    with localcontext(prec=DIGITS):
        rounded = money.quantize(_CENT, ROUND_HALF_EVEN)
    return "< 0.01" if money and not rounded else f"{rounded:,f}"


def document(bill: Bill) -> dict[str, Any]:
    """Return all charges for programs. Costs and prices are texts with all digits, null if they are unknown."""
    total = bill.total()
    return {
        "month": str(bill.month),
        "begin": datetime.fromtimestamp(bill.month.span_s[0], UTC).isoformat(),
        "end": datetime.fromtimestamp(bill.month.span_s[1], UTC).isoformat(),
        "ended": bill.ended,
        "currency": bill.currency,
        "total": decimal(total),
        "total_at_least": bill.is_lower_bound(),
        "total_approximate": bill.is_approximate(),
        "clusters": [
            {
                "cluster": use.cluster,
                "source": use.source,
                "seen_hours": use.seen_s / 3_600,
                "month_hours": bill.month.hours,
                "total": decimal(bill.total(bill.charges_of(use))),
                "total_at_least": bill.is_lower_bound([use]),
                "total_approximate": bill.is_approximate([use]),
            }
            for use in bill.uses
        ],
        "charges": [
            {
                "cluster": charge.cluster,
                "team": charge.team,
                "contact": charge.contact,
                "direction": "in" if charge.kind is QuotaType.PRODUCE else "out",
                "bytes": charge.amount,
                "price_per_gb": decimal(charge.price),
                "cost": decimal(charge.cost),
                "at_least": charge.at_least,
                "approximate": charge.approximate,
                "seen_hours": charge.seen_hours,
            }
            for charge in bill.charges
        ],
        "caveats": list(caveats(bill)),
        "notes": list(NOTES),
    }
