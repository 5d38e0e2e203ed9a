"""The tables of `quotascope shadow`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis import units
from quotascope.exporter.shadow import UnevaluatedReason
from quotascope.exporter.snapshot import Shadow, Snapshot, place_of
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, spelled
from quotascope.pages.words import seconds, shown
from quotascope.quotas import InvalidQuotas, QuotaSet, measure_only

from .fitted import Fitted
from .usage_table import DELAY, QUOTA_TYPE, USAGE_OF_LIMIT, USED, WHO

if TYPE_CHECKING:
    from quotascope.pipeline.runs.verify import Verification

_MOST: Final = 50
"""Entities of a verification."""


def _table(title: str, headers: str) -> Table:
    """One without rows; names in a title are no markup."""
    table = Table(
        title=Text(title) if title else None, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold"
    )
    for header in headers.split(", "):
        table.add_column(header, overflow="fold")
    return table


def counts(shadows: Sequence[Shadow]) -> Fitted:
    """One row for each shadow and quota type, all brokers together."""
    table = _table("", "shadow, quota, entities, would be throttled, unknown")
    for each, kind in product(shadows, QuotaType):
        places = [place for place in each.evaluated if place[0] is kind]
        reasons = Counter[str]()
        for (of, _, reason), count in each.unevaluated.items():
            reasons[str(reason)] += count if of is kind else 0
        unknown = [f"{count} {reason}" for reason, count in sorted(reasons.items()) if count]
        throttled = sum(each.throttled[place] for place in places)
        known = Text(str(throttled), "red" if throttled else "green")
        cells = (str(sum(each.evaluated[place] for place in places)), known) if places else ("?", "?")
        if places or unknown:
            table.add_row(Text(one_line(each.name)), units.type_name(kind), *cells, ", ".join(unknown) or "none")
    return Fitted(table)


def nearest(snapshot: Snapshot, top: int) -> Iterator[Fitted]:
    """The entities nearest to the limits of each shadow, beside what is enforced."""
    headers = "node, entity, quota, usage / shadow limit, used, shadow throttle, limit now, throttle now"
    enforced = {place_of(usage.entity): usage for usage in snapshot.measured}
    for each in snapshot.shadows if top else ():
        if not each.entities:
            continue
        table = _table(f"\n{one_line(each.name)}", headers)
        for usage in each.entities[:top]:
            now = enforced.get(place_of(usage.entity))
            enforced_now = ("-", "-") if now is None else (units.limit_name(now.entity), units.throttle_name(now))
            cells = (column.cell(usage) for column in (WHO, QUOTA_TYPE, USAGE_OF_LIMIT, USED, DELAY))
            table.add_row(Text(one_line(usage.entity.broker)), *cells, *enforced_now)
        yield Fitted(table, name=1)


def advice_on(snapshot: Snapshot) -> Iterator[str]:
    """How to measure what the brokers measure as one, or not at all."""
    if snapshot.limits is None:
        return
    unmeasured = {
        kind.quota_key: None
        for each in snapshot.shadows
        for kind, _, reason in each.unevaluated
        if reason in {UnevaluatedReason.FINER, UnevaluatedReason.UNMEASURED}
    }
    quotas = QuotaSet(snapshot.limits.quotas())
    for key in unmeasured:
        try:
            helps = quotas != measure_only(quotas, QuotaEntity(DEFAULT, DEFAULT), [key])
        except InvalidQuotas:
            helps = False
        if helps:
            yield f"{key}: to measure each user and client-id, without a limit: quotascope quotas set --measure-only {key} --default-user --default-client-id --apply"
        else:
            yield f"{key}: a rule that only measures would overrule limits that are set: `quotascope shadow stream` needs none (docs/shadow-stream.md)"


def verified(found: Verification) -> Fitted:
    """Predicted and happened, the entities first that differ most."""
    title = f"Shadow {shown(found.shadow)}: predicted → since it is set"
    table = _table(title, "entity, throttled, throttle time, refused, ")
    for column in table.columns[1:]:
        column.justify = "right"
    for each in found.entities[:_MOST]:
        before, after = each.predicted, each.happened
        entity = spelled(each.user, each.client_id)
        cells = (
            f"{entity} on {shown(each.cluster)}" if each.cluster else entity,
            f"{before.throttled:,} → {after.throttled:,}",
            f"{seconds(before.seconds)} → {seconds(after.seconds)}",
            f"{before.refused:,} → {after.refused:,}",
            "" if each.agrees else "differs",
        )
        table.add_row(*map(Text, cells))
    if len(found.entities) > _MOST:
        table.caption = f"{len(found.entities) - _MOST:,} more: --json"
    return Fitted(table)
