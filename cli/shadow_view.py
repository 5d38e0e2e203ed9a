"""The tables of `quotascope shadow`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

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
from .usage_table import DELAY, QUOTA_TYPE, USAGE_OF_LIMIT, USED, WHO, style_of

_CELLS: Final = (WHO, QUOTA_TYPE, USAGE_OF_LIMIT, USED, DELAY)


def _table(title: str, headers: str) -> Table:
    """Return a table without rows; names in its title are no markup."""
    table = Table(
        title=Text(title) if title else None, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold"
    )
    for header in headers.split(", "):
        table.add_column(header, overflow="fold")
    return table


def counts(shadows: Sequence[Shadow]) -> Fitted:
    """Return a row for each shadow and quota type, for all brokers: the differences to the quotas in force."""
    changes = ", ".join(change.words for change in ThrottleChange)
    table = _table("Difference to the quotas in force", f"shadow, quota, entities, {changes}, unknown")
    for shadow, kind in product(shadows, QuotaType):
        places = [place for place in shadow.changes if place[0] is kind]
        reasons = Counter[str]()
        for (quota_type, _, reason), count in shadow.unevaluated.items():
            reasons[str(reason)] += count if quota_type is kind else 0
        unknown = [f"{count} {reason}" for reason, count in sorted(reasons.items()) if count]
        cells: Sequence[Text | str] = ["?"] * (1 + len(ThrottleChange))
        if places:
            changed = [shadow.changes[place] for place in places]
            numbers = {change: sum(counts.get(change, 0) for counts in changed) for change in ThrottleChange}
            entities = str(sum(shadow.evaluated[place] for place in places))
            cells = [entities, *(Text(str(number), _color(change, number)) for change, number in numbers.items())]
        if places or unknown:
            table.add_row(Text(one_line(shadow.name)), units.type_name(kind), *cells, ", ".join(unknown) or "none")
    return Fitted(table)


def _color(change: ThrottleChange, count: int) -> str:
    """Return red for a change that speaks against a shadow, green if there is none."""
    if change.worse:
        return "red" if count else "green"
    return ""


def nearest(snapshot: Snapshot, top: int) -> Iterator[Fitted]:
    """Yield for each shadow the entities that it changes most, or nearest to its limits, and the limits in force."""
    headers = "node, entity, quota, usage / shadow limit, used, shadow throttle, change, limit now, throttle now"
    enforced = {place_of(usage.entity): usage for usage in snapshot.measured}
    for shadow in snapshot.shadows if top else ():
        if not shadow.entities:
            continue
        table = _table(f"\n{one_line(shadow.name)}", headers)
        usages = shadow.entities[:top]
        for usage in usages:
            measured = enforced.get(place_of(usage.entity))
            in_force = ("-", "-")
            if measured is not None:
                in_force = units.limit_name(measured.entity), units.throttle_name(measured)
            style = style_of(usage, snapshot.thresholds.near_limit)
            who, kind, amount, used, delay = (column.cell(usage, style) for column in _CELLS)
            if usage.held_back:
                used = Text(lower_bound(str(used), held_back=True))
            change = units.NOT_APPLICABLE if usage.change is None else usage.change.words
            table.add_row(Text(one_line(usage.entity.broker)), who, kind, amount, used, delay, change, *in_force)
        notes = [HELD_BACK] if any(usage.held_back for usage in usages) else []
        if any(usage.worse for usage in usages):
            notes.append(FIRST_THROTTLE)
        table.caption = "\n".join(notes) or None
        yield Fitted(table, name=1)


def advice_on(snapshot: Snapshot) -> Iterator[str]:
    """Yield commands by which brokers measure clients that they measure together, or not at all."""
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
                "needs none (docs/shadow-stream.md)"
            )
