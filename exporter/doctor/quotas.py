"""Whether there are quotas, who decides about them, and whether anybody is measured under them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..diagnosis import Severity, callback_classes, diagnose_quotas
from ..limits import QUOTA_KEYS
from ..rule_usage import RuleUsage, rule_usage
from ..snapshot import Snapshot
from ..untrusted import shown
from .result import Result, Verdict

_EXAMPLES: Final = 3


def quotas(snapshot: Snapshot) -> Iterator[Result]:
    """The rules, the entities, and what stands between them."""
    if not any(source.up for source in snapshot.sources):
        return
    findings = diagnose_quotas(snapshot)
    for finding in findings:
        bad = finding.severity is Severity.ERROR
        verdict = Verdict.BROKEN if bad else Verdict.LOOK
        yield _result(verdict, finding.text, finding.advice)
    if not findings:
        yield _result(Verdict.FINE, _counts(snapshot))
    if snapshot.limits is not None and not callback_classes(snapshot):
        text = "Kafka's own rules decide: no broker has a client.quota.callback.class."
        yield _result(Verdict.FINE, text)


def _counts(snapshot: Snapshot) -> str:
    measured = f"{len(snapshot.measured)} entities are measured"
    if snapshot.limits is None:
        return f"{measured}; the limits are not known."
    counts = ((key, snapshot.limits.count(key)) for key in QUOTA_KEYS)
    told = ", ".join(f"{count} of {key}" for key, count in counts if count)
    return f"{measured}; limits: {told or 'none'}."


def unused(snapshot: Snapshot) -> Iterator[Result]:
    """Limits that nobody is measured under at the moment: absent clients, or names with a mistake."""
    if snapshot.limits is None or not snapshot.measured:
        return
    rules = rule_usage(snapshot.limits, snapshot)
    idle = [rule for rule in rules if not rule.hits]
    if not idle:
        return
    examples = "; ".join(map(_named, idle[:_EXAMPLES]))
    more = "; …" if len(idle) > _EXAMPLES else ""
    yield _result(
        Verdict.NOTE,
        f"Nobody is measured under {len(idle)} of {len(rules)} limits now: {examples}{more}.",
        "Their clients are away, or a name has a mistake: `quotascope quotas list` shows all.",
    )


def _named(rule: RuleUsage) -> str:
    return f"{rule.key} of {shown(rule.entity)}"


def _result(verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(check="quotas", verdict=verdict, text=text, advice=advice)
