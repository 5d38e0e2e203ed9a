"""Snapshots of `quotascope status` in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.catalog import Finding, FindingSeverity
from quotascope.exporter.diagnosis.releases import release_line
from quotascope.exporter.diagnosis.selection import most_pressing
from quotascope.exporter.diagnosis.units import (
    handlers_idle,
    left_out,
    legend,
    limits_unknown,
    replication_throttles,
    source_state,
    throttles_unknown,
    unseen_clients,
    waiting,
)
from quotascope.exporter.limits import QUOTA_KEYS
from quotascope.exporter.snapshot import EntityUsage, Snapshot, SourceHealth
from quotascope.exporter.untrusted import one_line
from quotascope.pages.words import counted

from .fitted import Fitted
from .usage_table import (
    DELAY,
    NODE,
    QUOTA,
    QUOTA_TYPE_WHOLE,
    RULE,
    USAGE_OF_LIMIT,
    USED,
    WHO,
    WIDEST,
    burst_column,
    shadow_column,
    style_of,
)


def view(snapshot: Snapshot, findings: Sequence[Finding], top: int) -> RenderableType:
    """Return sources, limits, findings, and the most urgent entities."""
    limits, measured = snapshot.limits, snapshot.measured
    rule_counts = "unknown"
    if limits is not None:
        rule_counts = ", ".join(f"{key} {limits.count(key)}" for key in QUOTA_KEYS)
    parts: list[RenderableType] = [
        _sources(snapshot.sources),
        Text(),
        Text(f"Kafka: {release_line(snapshot.limits)}"),
        Text(f"limits: {rule_counts}"),
        Text(f"request handlers idle: {handlers_idle(snapshot)}"),
    ]
    throttles = replication_throttles(limits.nodes) if limits is not None else []
    if throttles:
        parts.append(Text(f"replication throttles: {'; '.join(throttles)}"))
    for finding in findings:
        style = "red" if finding.severity is FindingSeverity.ERROR else "yellow"
        text = Text(f"{finding.severity.value}: ", style=f"bold {style}")
        text.append(one_line(finding.text), style="default not bold")
        if finding.advice:
            text.append(f"\n  {one_line(finding.advice)}", style="default not bold")
        parts += [Text(), text]
    pressing = most_pressing(measured, snapshot.thresholds.near_limit)
    parts += [Text(), Text(_entities(snapshot, pressing, top))]
    if pressing and top:
        shown = pressing[:top]
        parts += [_usage(shown, snapshot), Text(legend(usage.entity.quota_type for usage in shown), "dim")]
    return Group(*parts)


def as_json(snapshot: Snapshot, findings: Sequence[Finding], top: int) -> dict[str, object]:
    """Return the documents of the exporter's JSON API, for programs."""
    from quotascope.exporter.api.answers import entity_document, health_document

    measured = snapshot.measured
    pressing = most_pressing(measured, snapshot.thresholds.near_limit, top)
    return {
        "health": health_document(snapshot, findings),
        "entities_total": len(measured) + snapshot.unsent,
        "entities": [entity_document(usage) for usage in pressing],
    }


def _sources(sources: Sequence[SourceHealth]) -> Fitted:
    """Return a row for each source."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("source", "dialect", "state"):
        table.add_column(header, overflow="fold")
    for header in ("took", "readings"):
        table.add_column(header, justify="right")
    for source in sources:
        state = Text(source_state(source), "green" if source.up else "red")
        took = f"{source.duration_seconds:.3f} s"
        name = Text(one_line(source.name))
        dialect = Text(one_line(source.dialect))
        table.add_row(name, dialect, state, took, str(source.readings))
    return Fitted(table)


def _entities(snapshot: Snapshot, pressing: Sequence[EntityUsage], top: int) -> str:
    """
    Return a sentence on the number of entities, and on what is unknown of them.

    It ends with a colon if a table of the most urgent ones follows.
    """
    if not snapshot.nodes:
        return "quota entities: unknown"
    total = counted(len(snapshot.measured) + snapshot.unsent, "quota entity")
    if omitted := left_out(snapshot):
        total += f" ({omitted}: not one by one in the metrics)"
    if unseen := unseen_clients(snapshot):
        total += f"; {unseen}"
    if not snapshot.measured:
        return total
    counts = {
        "limits": limits_unknown(snapshot.measured),
        "throttle times": throttles_unknown(snapshot.measured),
    }
    unknown = [f"{what} of {count} unknown" for what, count in counts.items() if count]
    if not pressing and unknown:
        throttled = "known to be throttled" if counts["throttle times"] else "throttled"
        return f"{total}, none of them {throttled}; {', '.join(unknown)}"
    if not pressing:
        ending = ", none of them throttled or near a limit"
        if unseen:
            ending = "; none of those shown is throttled or near a limit"
        elif held := waiting(snapshot):
            connections = counted(round(held), "connection")
            ending = f", none of them shown as throttled or near a limit, though {connections} wait in delay queues"
        return f"{total}{ending}"
    remark = f" ({', '.join(unknown)})" if unknown else ""
    some = f"{top:,} of them, " if len(pressing) > top > 0 else ""
    return f"{total}; {some}throttled longest, or else closest to the limit{remark}:"


_QUOTA_TYPE: Final = replace(QUOTA_TYPE_WHOLE, width=QUOTA)
"""Column of the quota type, of several words on several lines."""


def _usage(entities: Sequence[EntityUsage], snapshot: Snapshot) -> Constrain:
    """Return a row for each entity, with columns for what the snapshot has."""
    # expanded, names share the width that numbers leave: a long name cannot push numbers out
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
    columns = (
        NODE,
        WHO,
        _QUOTA_TYPE,
        USAGE_OF_LIMIT,
        USED,
        *burst_column(snapshot),
        DELAY,
        *shadow_column(snapshot),
        RULE,
    )
    for column in columns:
        table.add_column(
            column.header,
            justify="right" if column.right else "left",
            max_width=None if column.right else column.width,
            ratio=column.share,
            no_wrap=column is not _QUOTA_TYPE,
        )
    for usage in entities:
        style = style_of(usage, snapshot.thresholds.near_limit)
        table.add_row(*(column.cell(usage, style) for column in columns))
    return Constrain(Fitted(table, name=1), WIDEST)
