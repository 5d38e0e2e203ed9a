"""How `quotascope status` shows a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.counts import left_out, limits_unknown, throttles_unknown
from quotascope.exporter.diagnosis import Finding, Severity
from quotascope.exporter.limits import QUOTA_KEYS, Limits
from quotascope.exporter.ranking import most_pressing
from quotascope.exporter.snapshot import (
    EntityUsage,
    Snapshot,
    SourceHealth,
    ThrottleCause,
)
from quotascope.exporter.units import (
    entity_name,
    rule_name,
    seconds,
    short_type,
    usage_of_limit,
    used_name,
)
from quotascope.exporter.untrusted import one_line

from .usage_table import WIDEST

_NODE = 11
"""Digits of the largest node id, and a sign."""


def view(snapshot: Snapshot, findings: Sequence[Finding], top: int) -> RenderableType:
    """Sources, limits, findings, and the entities to look at first."""
    return Group(*_parts(snapshot, findings, top))


def _parts(
    snapshot: Snapshot, findings: Sequence[Finding], top: int
) -> Iterator[RenderableType]:
    yield _sources(snapshot.sources)
    yield Text()
    yield Text(_limits(snapshot.limits))
    for finding in findings:
        yield Text()
        yield _finding(finding)
    measured = snapshot.measured
    pressing = most_pressing(measured, len(measured))
    yield Text()
    yield Text(_entities(snapshot, pressing))
    if pressing and top:
        yield _usage(pressing[:top])


def _sources(sources: Sequence[SourceHealth]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("source", "dialect", "state"):
        table.add_column(header, overflow="fold")
    for header in ("took", "readings"):
        table.add_column(header, justify="right")
    for source in sources:
        up = "up" if source.stand_by_of is None else "stand-by"
        state = Text(up, "green") if source.up else Text("down", "red")
        took = f"{source.duration_seconds:.3f} s"
        name = Text(one_line(source.name))
        table.add_row(name, source.dialect, state, took, str(source.readings))
    return table


def _limits(limits: Limits | None) -> str:
    if limits is None:
        return "limits: unknown"
    counts = (f"{key} {limits.count(key)}" for key in QUOTA_KEYS)
    return f"limits: {', '.join(counts)}"


def _finding(finding: Finding) -> Text:
    style = "red" if finding.severity is Severity.ERROR else "yellow"
    text = Text(f"{finding.severity.value}: ", style=f"bold {style}")
    text.append(one_line(finding.text), style="default not bold")
    if finding.advice:
        text.append(f"\n  {one_line(finding.advice)}", style="default not bold")
    return text


def _entities(snapshot: Snapshot, pressing: Sequence[EntityUsage]) -> str:
    total = f"{len(snapshot.measured)} quota entities"
    if rest := left_out(snapshot):
        total += f" ({rest}: not one by one in the metrics)"
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
        return f"{total}, none of them throttled or near a limit"
    rest = f" ({', '.join(unknown)})" if unknown else ""
    return f"{total}; throttled longest, or else closest to the limit{rest}:"


def _usage(entities: Sequence[EntityUsage]) -> Constrain:
    # expanded, names share what the numbers leave: a long one cannot push them out
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
    table.add_column("node", no_wrap=True, max_width=_NODE)
    table.add_column("who", no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column("quota", no_wrap=True)
    for header in ("usage / limit", "used", "delay"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("rule that decides", no_wrap=True, overflow="ellipsis", ratio=4)
    for usage in entities:
        table.add_row(*_row(usage), Text(_rule(usage)))
    return Constrain(table, WIDEST)


def _row(usage: EntityUsage) -> Iterator[Text]:
    entity = usage.entity
    style = "red" if usage.throttle_time_seconds > 0 else ""
    yield Text(one_line(entity.broker))
    yield Text(entity_name(entity.user, entity.client_id), style)
    yield Text(short_type(entity.quota_type))
    yield Text(usage_of_limit(usage))
    yield Text(used_name(entity, usage.utilization), style)
    yield Text(
        seconds(usage.throttle_time_seconds) if usage.throttle_known else "unknown",
        style,
    )


def _rule(usage: EntityUsage) -> str:
    if usage.cause is ThrottleCause.CONTROLLER_MUTATION:
        return "throttled by a mutation quota"
    if usage.cause is ThrottleCause.UNKNOWN:
        return "unknown: its own quota or a mutation quota"
    return rule_name(usage.entity.resolution)
