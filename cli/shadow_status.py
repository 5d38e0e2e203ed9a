"""`quotascope shadow status`: what brokers would do now under quotas that are not set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options
from .options import grouped
from .settings import RunningExporter, SourceOptions

if TYPE_CHECKING:
    from rich.table import Table

    from quotascope.exporter.snapshot import Shadow, Snapshot

EXAMPLES = """
Examples:

quotascope shadow status --exporter http://quotascope:9749

quotascope shadow status --config /etc/quotascope.yaml --shadow candidates.yaml --json

Exit code 0: no shadow would throttle any client now. 3: one would. 4: none would as far as is known, but something is unknown. 1: nothing could be read.
"""
_THROTTLES: Final = 3
_UNKNOWN: Final = 4


@grouped
def status(
    *,
    running: RunningExporter,
    candidates: Annotated[
        str | None,
        options.SHADOW,
    ] = None,
    top: options.Top = 10,
    json: options.Json = False,
    read: SourceOptions,
) -> None:
    """Show which clients each shadow would throttle at this moment, what is unknown, and how to measure it."""
    from rich.console import Console, Group
    from rich.text import Text

    from quotascope.exporter.api.documents import encoded, shadow_document

    from .status import observe

    target = running.target()
    if target is not None and candidates is not None:
        raise typer.BadParameter("--shadow is for reading brokers: a running exporter has shadows of its own")  # fmt: skip
    settings = read.configuration(log_level="error", shadow=candidates)
    snapshot, _ = asyncio.run(observe(settings, target))
    if not snapshot.shadows:
        raise typer.BadParameter("there is no shadow: give --shadow FILE, or `shadow:` in the configuration of the exporter")  # fmt: skip
    down = [each.name for each in snapshot.sources if not each.up and each.stand_by_of is None]  # fmt: skip
    advice = [*_advice(snapshot), *(f"source {name} cannot be read: its clients are unknown" for name in down)]  # fmt: skip
    if json:
        documents = list(map(shadow_document, snapshot.shadows))
        answer = {"taken_at": snapshot.taken_at, "shadows": documents, "advice": advice}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        tables = _counts(snapshot.shadows), *_nearest(snapshot, top)
        Console().print(Group(*tables, *map(Text, advice)))
    if any(any(each.throttled.values()) for each in snapshot.shadows):
        raise typer.Exit(_THROTTLES)
    if down or any(each.unevaluated or not each.evaluated for each in snapshot.shadows):
        raise typer.Exit(_UNKNOWN)


def _counts(shadows: Sequence[Shadow]) -> Table:
    """One row for each shadow and quota type, all brokers together."""
    from rich.table import Table
    from rich.text import Text

    from quotascope.exporter.diagnosis.units import type_name
    from quotascope.exporter.untrusted import one_line
    from quotascope.metrics import QuotaType

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("shadow", "quota", "entities", "would be throttled", "unknown"):
        table.add_column(header, overflow="fold")
    for each in shadows:
        for kind in QuotaType:
            places = [place for place in each.evaluated if place[0] is kind]
            reasons = Counter[str]()
            for (of, _, reason), count in each.unevaluated.items():
                if of is kind:
                    reasons[str(reason)] += count
            if places or reasons:
                throttled = sum(each.throttled[place] for place in places)
                evaluated = sum(each.evaluated[place] for place in places)
                known = Text(str(throttled), "red" if throttled else "green")
                unknown = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))  # fmt: skip
                table.add_row(
                    one_line(each.name),
                    type_name(kind),
                    str(evaluated) if places else "?",
                    known if places else "?",
                    unknown or "none",
                )
    return table


def _nearest(snapshot: Snapshot, top: int) -> Iterator[Table]:
    """The entities nearest to the limits of each shadow, beside what is enforced."""
    from rich.table import Table
    from rich.text import Text

    from quotascope.exporter.diagnosis.units import (
        entity_name,
        limit_name,
        percent,
        seconds,
        type_name,
        usage_of_limit,
    )
    from quotascope.exporter.snapshot import place_of
    from quotascope.exporter.untrusted import one_line

    enforced = (
        {place_of(usage.entity): usage for usage in snapshot.measured} if top else {}
    )
    for each in snapshot.shadows:
        if not each.entities or not top:
            continue
        table = Table(title=f"\n{one_line(each.name)}", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")  # fmt: skip
        for header in ("node", "entity", "quota", "usage / shadow limit", "used", "shadow throttle", "limit now", "throttle now"):  # fmt: skip
            table.add_column(header, overflow="fold")
        for usage in each.entities[:top]:
            entity, now = usage.entity, enforced.get(place_of(usage.entity))
            style = "red" if usage.throttle_time_seconds > 0 else ""
            table.add_row(
                one_line(entity.broker),
                Text(entity_name(entity.user, entity.client_id), style),
                type_name(entity.quota_type),
                usage_of_limit(usage),
                Text(percent(usage.utilization), style),
                Text(seconds(usage.throttle_time_seconds), style),
                "-" if now is None else limit_name(now.entity),
                "-" if now is None else seconds(now.throttle_time_seconds if now.throttle_known else None),
            )  # fmt: skip
        yield table


def _advice(snapshot: Snapshot) -> Iterator[str]:
    """How to measure what the brokers measure as one, or not at all."""
    from quotascope.exporter.shadow import UnevaluatedReason
    from quotascope.metrics import DEFAULT, QuotaEntity
    from quotascope.quotas import InvalidQuotas, QuotaSet, measure_only

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
