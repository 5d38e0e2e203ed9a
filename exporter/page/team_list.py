"""The page of all teams, with what is promised of each broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from urllib.parse import quote

from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.team_finder import WORDS

from ..diagnosis.units import NOT_APPLICABLE, UNKNOWN, UNLIMITED, measured, percent, type_name
from ..snapshot import Snapshot, Sold, TeamSums
from ..snapshot.layout import node_order
from .columns import TableCell, worded
from .query import PartQuery, Text, shown_part
from .render import PageFrame, as_of, name, render
from .teams import readable


class TeamQuery(PartQuery):
    """The teams that a client asks for, and the part of them."""

    q: Text = ""
    """Only teams whose name contains it, ignoring case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """The sums of one team, of one quota type."""

    quota_type: QuotaType
    usage: float | None
    """Usage in the units of ``Entity.limit``; None where nothing of it is measured."""
    complete: bool
    """False if some of the usage is unknown, so that usage and used part are the least that they can be."""
    allowed: float | None
    """
    What Kafka would let through at most; None when an entity is unlimited, or nothing is known of limits.
    """
    allowed_complete: bool
    """False if some of the limits are unknown, so that ``allowed`` is the least that it can be, and no bound."""
    stranded: float | None
    """The limits that hold on brokers without their entities; None without such brokers, and where they are unknown."""
    stranded_complete: bool
    """False if some brokers or limits are unknown, so that ``stranded`` is the least that it can be."""
    fairness: float | None
    """Jain's index of the usage over all brokers; None for fewer than two, without usage, and where some is unknown."""
    fairness_unknown: bool
    """True if there is usage on two brokers or more, or on an unknown number, and it cannot be compared."""
    unlimited: int
    """The number of entities that are known to be unlimited."""
    budget: float | None
    budget_ratio: float | None
    throttled: int | None
    """The number of entities that this quota throttles on some node; None where it is unknown."""
    throttled_complete: bool
    """False if some throttles are unknown, so that ``throttled`` is the least that it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResult:
    """A team, or the entry for entities without a team or of an unknown one."""

    name: str
    team: Team | None
    entities: int
    """The number of its users and client-ids."""
    rows: Sequence[TeamRow]
    """Sums by quota type."""

    @property
    def urgency(self) -> float:
        """The highest used part of a budget; below 0 for a team without a budget."""
        return max((row.budget_ratio for row in self.rows if row.budget_ratio is not None), default=-1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsResult:
    """The teams that a query finds."""

    snapshot: Snapshot
    query: TeamQuery
    total: int
    teams: Sequence[TeamResult]
    """The teams of the part that is shown: the fullest budgets first, then in the order of the file."""


def find_teams(snapshot: Snapshot, query: TeamQuery) -> TeamsResult:
    """Return the teams of a query; none without a file of teams."""
    sums = snapshot.teams
    matching = [] if sums is None else [*_teams(snapshot, sums, query.q.casefold())]
    matching.sort(key=lambda team: -team.urgency)
    part_of_teams = matching[query.offset : query.offset + query.size]
    return TeamsResult(snapshot=snapshot, query=query, total=len(matching), teams=part_of_teams)


def _teams(snapshot: Snapshot, sums: TeamSums, text: str) -> Iterator[TeamResult]:
    """Yield the teams with this text in their names."""
    for place, label in enumerate(sums.names):
        team = sums.teams[place] if place < len(sums.teams) else None
        entities = int(sums.entities[place])
        if text not in label.casefold() or (team is None and not entities):
            continue
        rows = [_row(snapshot, sums, kind, place) for kind in QuotaType]
        yield TeamResult(name=label, team=team, entities=entities, rows=rows)


def _row(snapshot: Snapshot, sums: TeamSums, kind: QuotaType, place: int) -> TeamRow:
    """Return the sums of the team at a place in the names."""
    all_read = not snapshot.incomplete
    team = sums.teams[place] if place < len(sums.teams) else None
    usage = _known(float(sums.usage[kind][place]))
    fairness = _known(float(sums.fairness[kind][place])) if all_read else None
    has_brokers = kind is not QuotaType.CONTROLLER_MUTATION and snapshot.enforcers != 1
    ratio = sums.budget_ratio(kind)[place]
    throttled = _known(float(sums.throttled[kind][place]))
    return TeamRow(
        quota_type=kind,
        usage=usage,
        complete=all_read and bool(sums.usage_complete[kind][place]),
        allowed=_known(float(sums.allowed_known[kind][place])),
        allowed_complete=all_read and bool(sums.allowed_complete[kind][place]),
        stranded=_known(float(sums.stranded[kind][place])),
        stranded_complete=all_read and bool(sums.stranded_complete[kind][place]),
        fairness=fairness,
        fairness_unknown=fairness is None and has_brokers and usage is not None and usage > 0,
        unlimited=int(sums.unlimited[kind][place]),
        budget=team.budgets.get(kind) if team is not None else None,
        budget_ratio=_known(float(ratio)),
        throttled=None if throttled is None else int(throttled),
        throttled_complete=all_read and bool(sums.throttled_complete[kind][place]),
    )


def _known(value: float) -> float | None:
    """Return a number; None for NaN and infinity, which stand for an unknown one."""
    return value if isfinite(value) else None


def teams_page(result: TeamsResult | None, frame: PageFrame, problem: str = "") -> str:
    """Return the page as HTML; None before the first collection."""
    values: dict[str, object] = {}
    if result is not None:
        query, snapshot = result.query, result.snapshot
        caption = shown_part(query.offset, len(result.teams), result.total) or "No team matches."
        if snapshot.incomplete:
            caption += " Not all brokers are read: sums are the least that they can be."
        sold = sorted(snapshot.sold.items(), key=lambda item: (-item[1].ratio, node_order(item[0][1])))
        brokers = {broker for (_, broker), _ in sold}
        oversold = {broker for (_, broker), one in sold if one.ratio > 1}
        values = {
            **as_of(snapshot),
            "oversold": f"{len(oversold)} of {len(brokers)} brokers are oversold.",
            "given": query.parameters(),
            "has_teams": snapshot.teams is not None,
            "caption": caption,
            "types": [type_name(kind) for kind in QuotaType],
            "rows": [_cells(team) for team in result.teams],
            "sold": [_sold(kind, broker, one) for (kind, broker), one in sold],
            "before": query.before,
            "following": query.following(result.total),
            "json": f"api/v1/teams{query.address}",
        }
    return render(
        "teams.html", frame, here="teams", board=frame.board_of_teams, result=result, problem=problem, **values
    )


def _cells(result: TeamResult) -> dict[str, object]:
    """Return the values of the row of a team."""
    throttled = [
        f"{_least(row.throttled_complete)}{row.throttled} by {type_name(row.quota_type)}"
        for row in result.rows
        if row.throttled
    ]
    if not throttled:
        all_known = all(row.throttled_complete for row in result.rows)
        is_zero = all_known and any(row.throttled == 0 for row in result.rows)
        throttled = ["0" if is_zero else UNKNOWN]
    return {
        "name": WORDS.get(result.name, name(result.name)),
        "contact": name(result.team.contact or "") if result.team is not None else "",
        "href": f"./?team={_quoted(result.name)}&show=all",
        "entities": str(result.entities),
        "throttled": TableCell(
            text=", ".join(throttled) if result.entities else NOT_APPLICABLE,
            color="over" if any(row.throttled for row in result.rows) else "",
        ),
        "amounts": [_amount(row) for row in result.rows],
    }


def _amount(row: TeamRow) -> TableCell:
    """Return the usage of a team, the sum of its limits, the used part of its budget, stranded limits and fairness."""
    kind = row.quota_type
    if row.usage is None and row.budget is None and row.allowed is None:
        return worded(NOT_APPLICABLE)
    mark = _least(row.complete)
    text = UNKNOWN if row.usage is None else f"{mark}{measured(kind, row.usage, row.allowed)}"
    if row.allowed is not None and not row.allowed_complete:
        text += f", limits ≥ {measured(kind, row.allowed, row.allowed)}"
    elif row.allowed is not None:
        text += f" of at most {measured(kind, row.allowed, row.allowed)}"
    elif row.usage is not None:
        no_limit = UNLIMITED if row.unlimited else f"limit {UNKNOWN}"
        text += f", {no_limit}"
    if row.budget is not None:
        part = UNKNOWN if row.budget_ratio is None else f"{mark}{percent(row.budget_ratio)}"
        text += f"; {part} of the budget of {measured(kind, row.budget, row.budget)}"
    if row.stranded or (row.allowed is not None and not row.stranded_complete):
        mark = _least(row.stranded_complete)
        stranded = f"{mark}{measured(kind, row.stranded, row.allowed)}" if row.stranded else UNKNOWN
        text += f"; stranded {stranded}"
    if row.fairness is not None:
        text += f"; fairness {row.fairness:.2f}"
    elif row.fairness_unknown:
        text += f"; fairness {UNKNOWN}"
    return TableCell(text=text, color="over" if row.budget_ratio is not None and row.budget_ratio >= 1 else "")


def _least(complete: bool) -> str:  # noqa: FBT001
    """Return the mark of a number that is a lower bound."""
    return "" if complete else "≥ "


def _sold(kind: QuotaType, broker: str, sold: Sold) -> dict[str, object]:
    """Return the values of the row of a broker: the limits that hold on it, against what it can do."""
    return {
        "broker": name(broker),
        "quota": type_name(kind),
        "limits": measured(kind, sold.limits, sold.limits),
        "capacity": f"{measured(kind, sold.capacity, sold.capacity)}, {sold.origin.value}",
        "ratio": TableCell(text=percent(sold.ratio), color="over" if sold.ratio > 1 else ""),
    }


def _quoted(text: str) -> str:
    """Return a team's name as a part of an address."""
    return quote(readable(text), safe="", errors="replace")
