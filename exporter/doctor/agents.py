"""Whether each agent can be read, which dialect it speaks, and what that cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quotascope.metrics import QuotaType

from ..beans import BeanTable
from ..limits import Limits
from ..snapshot import SourceRead
from ..units import short_type
from .result import Result, Verdict

_QUEUE: Final = "queue-size"
_POOR: Final = {
    "kafka_2_0_0": "no delay queues, exempt request time, new connections or replication",
    "confluent": "no mutation quotas, delay queues, exempt request time, new connections or replication",
}
"""What dialects leave out whatever the agent is told; docs/dialects.md has the whole table."""
_BETTER: Final = "Use `quotascope rules jmx-exporter`, or Jolokia."


def agents(reads: Iterable[SourceRead], limits: Limits | None) -> Iterator[Result]:
    """One result for each source, and more for what its agent keeps to itself."""
    none = True
    for read in reads:
        none = False
        yield _reachable(read)
        if read.table is not None:
            yield from _told(read.health.name, read.health.dialect, read.table, limits)
    if none:
        text = "There is no source to read."
        advice = "Name agents under `sources`, or let `discovery` find them."
        yield Result(check="agents", verdict=Verdict.BROKEN, text=text, advice=advice)


def _reachable(read: SourceRead) -> Result:
    health, table = read.health, read.table
    if health.up and health.stand_by_of is not None:
        text = f"Stands by for node {health.stand_by_of}, which is read through another source."
        return _result(health.name, Verdict.FINE, text)
    if table is None:
        return _result(health.name, Verdict.BROKEN, f"Cannot be read: {health.error}")
    text = f"Node {table.node_id} speaks {health.dialect}: {health.readings} numbers in {health.duration_seconds:.3f} s."
    return _result(health.name, Verdict.FINE, text)


def _told(
    name: str, dialect: str, table: BeanTable, limits: Limits | None
) -> Iterator[Result]:
    if table.remark is not None:
        yield _result(name, Verdict.LOOK, "Gives less than it could.", table.remark)
    if dialect in _POOR:
        missing = _mutations_unseen(dialect, limits)
        verdict = Verdict.LOOK if missing else Verdict.NOTE
        text = f"{dialect} tells {_POOR[dialect]}{missing}."
        yield _result(name, verdict, text, _BETTER)
    elif unseen := list(_without_queue(table)):
        kinds = ", ".join(map(short_type, unseen))
        text = f"Tells of no delay queue of {kinds}, which every node has."
        advice = "What the agent lets through is too narrow: its policy (Jolokia), rules or includeObjectNames (jmx_exporter) or allowList (Strimzi). docs/dialects.md says what is needed."
        yield _result(name, Verdict.LOOK, text, advice)


def _mutations_unseen(dialect: str, limits: Limits | None) -> str:
    configured = limits and limits.rules.get(QuotaType.CONTROLLER_MUTATION)
    if dialect != "confluent" or not configured:
        return ""
    return f", though {len(configured)} mutation quotas are configured"


def _without_queue(table: BeanTable) -> Iterator[QuotaType]:
    types = {
        column.bean.get("type")
        for column in table.layout.columns
        if column.attribute == _QUEUE
    }
    return (kind for kind in QuotaType if kind.group not in types)


def _result(name: str, verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(
        check="agents", subject=name, verdict=verdict, text=text, advice=advice
    )
