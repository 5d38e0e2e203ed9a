"""Shows rules that apply to no client because of their name, in `quotascope quotas` and `quotascope doctor`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from quotascope.quotas import Entity, QuotaSet, RuleChange, bash_quoted, to_admin

if TYPE_CHECKING:
    from quotascope.exporter.diagnosis.misnamed import Misnamed
    from quotascope.exporter.snapshot import Snapshot

MOST: Final = 5
"""Number of rules that are shown with their commands."""


def of_changes(
    changes: Iterable[RuleChange], present: QuotaSet, snapshot: Snapshot | None
) -> Mapping[Entity, Misnamed]:
    """
    Return the misnamed rules among new rules, by entity.

    Args:
        changes: The changes of rules.
        present: The rules of the cluster.
        snapshot: The measured names; None if they are unknown.

    """
    from quotascope.exporter.diagnosis.misnamed import measured_names, misnamed

    new_rules: dict[Entity, dict[str, float]] = {}
    for change in changes:
        if change.new is not None:
            new_rules.setdefault(change.entity, {})[change.key] = change.new
    return misnamed(new_rules, measured_names(snapshot), present, in_force=False)


def lines(rules: Collection[Misnamed], connection: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about each misnamed rule, and its commands below. A terminal must not wrap a command."""
    from quotascope.exporter.untrusted import one_line

    for rule in [*rules][:MOST]:
        yield one_line(rule.text)
        yield from (f"  {command}" for command in connected(rule.commands, connection))
    if len(rules) > MOST:
        yield f"and {len(rules) - MOST} more rules that apply to no client by their names: --json shows all"


def connected(commands: Iterable[str], connection: Sequence[str]) -> list[str]:
    """Return commands with the options of the connection to Kafka."""
    return [" ".join((command, *map(bash_quoted, connection))) for command in commands]


def as_json(rule: Misnamed | None, connection: Sequence[str]) -> dict[str, object] | None:
    """Return a misnamed rule for programs; None for a rule that is not misnamed."""
    if rule is None:
        return None
    return {
        "text": rule.text,
        "meant": [
            {
                "entity": to_admin(meant.entity),
                "rule": meant.entity.rule,
                "measured_under": None if meant.under is None else meant.under.rule,
                "has_rule": meant.has_rule,
            }
            for meant in rule.meant
        ],
        "commands": connected(rule.commands, connection),
    }
