"""Whether there are quotas, who decides about them, and whether anybody is measured under them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        return f"{measured}; the limits are unknown."
    counts = ((key, snapshot.limits.count(key)) for key in QUOTA_KEYS)
    told = ", ".join(f"{count} of {key}" for key, count in counts if count)
    return f"{measured}; limits: {told or 'no limit is configured'}."


def unused(snapshot: Snapshot) -> Iterator[Result]:
    """Limits that have no effect because another rule overrules them, and limits that no client is measured under at the moment."""
    if snapshot.limits is None:
        return
    rules = rule_usage(snapshot.limits, snapshot)
    idle = [rule for rule in rules if rule.hits == ()]
    overruled = [rule for rule in idle if rule.overruled_by is not None]
    if overruled:
        yield _result(
            Verdict.NOTE,
            f"{len(overruled)} of {len(rules)} limits have no effect on clients that send a client-id: {_examples(overruled)}.",
            "Remove them, or the rule that overrules them: `quotascope explain` shows which of the eight levels decides.",
        )
    rest = [rule for rule in idle if rule.overruled_by is None]
    if rest and snapshot.measured:
        yield _result(
            Verdict.NOTE,
            f"No client is measured under {len(rest)} of {len(rules)} limits now: {_examples(rest)}.",
            "Their clients are away, or a name has a mistake: `quotascope quotas list` shows all.",
        )


def _examples(rules: Sequence[RuleUsage]) -> str:
    examples = "; ".join(map(_named, rules[:_EXAMPLES]))
    return f"{examples}; …" if len(rules) > _EXAMPLES else examples


def _named(rule: RuleUsage) -> str:
    text = f"{rule.key} of {shown(rule.entity)}"
    if rule.overruled_by is None:
        return text
    return f"{text}, overruled by that of {shown(rule.overruled_by)}"


def _result(verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(check="quotas", verdict=verdict, text=text, advice=advice)
