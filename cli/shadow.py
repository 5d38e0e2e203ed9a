"""`quotascope shadow`: limits that are evaluated on live traffic, and enforced by no broker; `status` shows what brokers would do now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options, shadow_stream, shadow_verify
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


shadow = typer.Typer(
    name="shadow",
    help="Evaluate limits on live traffic before they are set.",
    no_args_is_help=True,
)


@shadow.command(epilog=EXAMPLES)
@grouped
def status(
    *,
    running: RunningExporter,
    candidates: Annotated[str | None, options.SHADOW] = None,
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
        about = "a running exporter has shadows of its own"
        raise typer.BadParameter(f"--shadow is for reading brokers: {about}")
    settings = read.configuration(log_level="error", shadow=candidates)
    snapshot, _ = asyncio.run(observe(settings, target))
    shadows, sources = snapshot.shadows, snapshot.sources
    if not shadows:
        wanted = "--shadow FILE, or `shadow:` in the configuration of the exporter"
        raise typer.BadParameter(f"there is no shadow: give {wanted}")
    down = [each.name for each in sources if not (each.up or each.stand_by_of)]
    about_down = "cannot be read: its clients are unknown"
    advice = [*_advice(snapshot), *(f"source {name} {about_down}" for name in down)]
    if json:
        documents = list(map(shadow_document, shadows))
        answer = {"taken_at": snapshot.taken_at, "shadows": documents, "advice": advice}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        tables = _counts(shadows), *_nearest(snapshot, top)
        Console().print(Group(*tables, *map(Text, advice)))
    if any(any(each.throttled.values()) for each in shadows):
        raise typer.Exit(_THROTTLES)
    if down or any(each.unevaluated or not each.evaluated for each in shadows):
        raise typer.Exit(_UNKNOWN)


shadow.command(epilog=shadow_stream.EXAMPLES)(shadow_stream.stream)
shadow.command(epilog=shadow_verify.EXAMPLES)(shadow_verify.verify)


def _empty(title: str | None, headers: str) -> Table:
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="bold",
    )
    for header in headers.split(", "):
        table.add_column(header, overflow="fold")
    return table


def _counts(shadows: Sequence[Shadow]) -> Table:
    """One row for each shadow and quota type, all brokers together."""
    from rich.text import Text

    from quotascope.exporter.diagnosis.units import type_name
    from quotascope.exporter.untrusted import one_line
    from quotascope.metrics import QuotaType

    table = _empty(None, "shadow, quota, entities, would be throttled, unknown")
    for each, kind in product(shadows, QuotaType):
        places = [place for place in each.evaluated if place[0] is kind]
        reasons = Counter[str]()
        for (of, _, reason), count in each.unevaluated.items():
            reasons[str(reason)] += count if of is kind else 0
        unknown = [f"{count} {reason}" for reason, count in sorted(reasons.items()) if count]
        throttled = sum(each.throttled[place] for place in places)
        evaluated = sum(each.evaluated[place] for place in places)
        known = Text(str(throttled), "red" if throttled else "green")
        if places or unknown:
            table.add_row(
                one_line(each.name),
                type_name(kind),
                str(evaluated) if places else "?",
                known if places else "?",
                ", ".join(unknown) or "none",
            )
    return table


def _nearest(snapshot: Snapshot, top: int) -> Iterator[Table]:
    """The entities nearest to the limits of each shadow, beside what is enforced."""
    from rich.text import Text

    from quotascope.exporter.diagnosis import units
    from quotascope.exporter.snapshot import place_of
    from quotascope.exporter.untrusted import one_line

    headers = "node, entity, quota, usage / shadow limit, used, shadow throttle, limit now, throttle now"
    enforced = {place_of(usage.entity): usage for usage in snapshot.measured}
    for each in snapshot.shadows:
        if not each.entities or not top:
            continue
        table = _empty(f"\n{one_line(each.name)}", headers)
        for usage in each.entities[:top]:
            entity, throttle_s = usage.entity, usage.throttle_time_seconds
            style = "red" if throttle_s > 0 else ""
            limit_now = throttle_now = "-"
            if (now := enforced.get(place_of(entity))) is not None:
                known_s = now.throttle_time_seconds if now.throttle_known else None
                limit_now, throttle_now = (
                    units.limit_name(now.entity),
                    units.seconds(known_s),
                )
            table.add_row(
                one_line(entity.broker),
                Text(units.entity_name(entity.user, entity.client_id), style),
                units.type_name(entity.quota_type),
                units.usage_of_limit(usage),
                Text(units.percent(usage.utilization), style),
                Text(units.seconds(throttle_s), style),
                limit_now,
                throttle_now,
            )
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
