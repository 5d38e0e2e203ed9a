"""The tables of `quotascope shadow`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis import units
from quotascope.exporter.shadow import UnevaluatedReason
from quotascope.exporter.snapshot import Shadow, Snapshot, place_of
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.pages.baseline import FIRST_THROTTLE, HELD_BACK, ThrottleChange, lower_bound
from quotascope.quotas import InvalidQuotas, QuotaSet, measure_only

from .fitted import Fitted
from .usage_table import DELAY, QUOTA_TYPE_WHOLE, USAGE_OF_LIMIT, USED, WHO, style_of

_DIFFERENCE: Final = "Difference to the quotas in force"
_HEADERS: Final = (
    *("node", "entity", "quota", "usage / shadow limit", "used", "shadow throttle", "change", "limit now"),
    "throttle now",
)
_NARROW_HEADERS: Final = ("node", "entity", "quota", "used", "shadow\nthrottle", "change", "throttle\nnow")
_CELLS: Final = (WHO, QUOTA_TYPE_WHOLE, USAGE_OF_LIMIT, USED, DELAY)


def _table(title: str, headers: Sequence[str], *, gap: int) -> Table:
    """Return a table without rows; names in its title are no markup."""
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=None,
        padding=(0, gap, 0, 0),
        header_style="bold",
    )
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def counts(shadows: Sequence[Shadow]) -> RenderableType:
    """
    Return a row for each shadow and quota type, for all brokers: the differences to the quotas in force.

    A narrow terminal has a table for each shadow, without the column of its name.
    """
    changes = [change.words for change in ThrottleChange]
    table = _table(_DIFFERENCE, ["shadow", "quota", "entities", *changes, "unknown"], gap=2)
    for shadow in shadows:
        for row in _counts(shadow):
            table.add_row(Text(one_line(shadow.name)), *row)
    return Fitted(table, narrow=Group(Text(_DIFFERENCE), *map(_counts_alone, shadows)))


def _counts_alone(shadow: Shadow) -> RenderableType:
    """Return the table of a single shadow for a narrow terminal, with its name as the title."""
    changes = [change.words.replace(" ", "\n") for change in ThrottleChange]
    table = _table(one_line(shadow.name), ["quota", "entities", *changes, "unknown"], gap=1)
    for row in _counts(shadow):
        table.add_row(*row)
    return Fitted(table)


def _counts(shadow: Shadow) -> Iterator[Sequence[Text | str]]:
    """Yield the cells of a shadow for each quota type, without its name."""
    for kind in QuotaType:
        places = [place for place in shadow.changes if place[0] is kind]
        reasons = Counter[str]()
        for (quota_type, _, reason), count in shadow.unevaluated.items():
            if quota_type is kind:
                reasons[str(reason)] += count
        unknown = [f"{count} {reason}" for reason, count in sorted(reasons.items()) if count]
        cells: Sequence[Text | str] = ["?"] * (1 + len(ThrottleChange))
        if places:
            numbers = {
                change: sum(shadow.changes[place].get(change, 0) for place in places) for change in ThrottleChange
            }
            entities = str(sum(shadow.evaluated[place] for place in places))
            cells = [entities, *(Text(str(number), _color(change, number)) for change, number in numbers.items())]
        if places or unknown:
            yield [units.type_name(kind), *cells, ", ".join(unknown) or "none"]


def _color(change: ThrottleChange, count: int) -> str:
    """Return red for a change to the worse, green if no entity has it, and no color for other changes."""
    if change.worse:
        return "red" if count else "green"
    return ""


def nearest(snapshot: Snapshot, top: int) -> Iterator[RenderableType]:
    """
    Yield for each shadow the entities that it changes most, or nearest to its limits, and the limits in force.

    A narrow terminal has neither the nodes, if there is one only, nor usage and limits: *used* is their ratio. Notes
    come once, at the end.
    """
    top_of_shadows = [(shadow, shadow.entities[:top]) for shadow in snapshot.shadows if shadow.entities[:top]]
    usages = [usage for _, entities in top_of_shadows for usage in entities]
    has_one_node = len({usage.entity.broker for usage in usages}) <= 1
    first_narrow = 1 if has_one_node else 0  # the column of the node is the first one
    enforced = {place_of(usage.entity): usage for usage in snapshot.measured}
    for shadow, entities in top_of_shadows:
        title = f"\n{one_line(shadow.name)}"
        table, narrow = _table(title, _HEADERS, gap=2), _table(title, _NARROW_HEADERS[first_narrow:], gap=1)
        for usage in entities:
            usage_now = enforced.get(place_of(usage.entity))
            limit_now = throttle_now = "-"
            if usage_now is not None:
                limit_now, throttle_now = units.limit_name(usage_now.entity), units.throttle_name(usage_now)
            style = style_of(usage, snapshot.thresholds.near_limit)
            who, kind, amount, used, delay = (column.cell(usage, style) for column in _CELLS)
            if usage.held_back:
                used = Text(lower_bound(str(used), held_back=True))
            change = units.NOT_APPLICABLE if usage.change is None else usage.change.words
            node = Text(one_line(usage.entity.broker))
            table.add_row(node, who, kind, amount, used, delay, change, limit_now, throttle_now)
            narrow_cells = (node, who, kind, used, delay, change, throttle_now)
            narrow.add_row(*narrow_cells[first_narrow:])
        yield Fitted(table, name=1, narrow=Fitted(narrow, name=1 - first_narrow))
    if any(usage.held_back for usage in usages):
        yield Text(HELD_BACK, "dim")
    if any(usage.worse for usage in usages):
        yield Text(FIRST_THROTTLE, "dim")


def advice_on(snapshot: Snapshot) -> Iterator[str]:
    """Yield commands that let brokers measure each client that they now measure as a group, or not at all."""
    if snapshot.limits is None:
        return
    unmeasured = {
        kind.quota_key: None
        for shadow in snapshot.shadows
        for kind, _, reason in shadow.unevaluated
        if reason in {UnevaluatedReason.FINER, UnevaluatedReason.UNMEASURED}
    }
    quotas = QuotaSet(snapshot.limits.quotas())
    for key in unmeasured:
        try:
            helps = quotas != measure_only(quotas, QuotaEntity(DEFAULT, DEFAULT), [key])
        except InvalidQuotas:
            helps = False
        if helps:
            yield (
                f"{key}: to measure each user and client-id, without a limit: quotascope quotas set --measure-only "
                f"{key} --default-user --default-client-id --apply"
            )
        else:
            yield (
                f"{key}: a rule that only measures would overrule limits that are set: `quotascope shadow stream` "
                "needs none (documentation: Shadows, request by request)"
            )
