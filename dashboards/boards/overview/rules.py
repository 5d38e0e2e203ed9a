"""The configured rules: the last row of the overview."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import columns
from ...expressions import RULE
from ...model import Query, Row, Table
from ...scope import Scope
from ...shortcuts import graph, line

_LIMITS = (
    ("Produce", catalog.RULE_PRODUCE_LIMIT, "Bps"),
    ("Fetch", catalog.RULE_FETCH_LIMIT, "Bps"),
    ("Threads", catalog.RULE_REQUEST_LIMIT, "short"),
    ("Changes/s", catalog.RULE_CONTROLLER_MUTATION_LIMIT, "short"),
)


def configured_rules(scope: Scope) -> Row:
    """What was configured, used or not."""
    counts = graph(
        "Configured rules",
        "How many rules there are, by what they limit. A line goes up or down when somebody adds or removes one.",
        "short",
        line(scope.by("max", scope.of(catalog.RULES), "quota_key"), "{{quota_key}}"),
    )
    panels = ((16, _all_rules(scope)), (8, counts))
    return Row(title="Configured rules", panels=panels, height=9, collapsed=True)


def _all_rules(scope: Scope) -> Table:
    return Table(
        title="Rules and their limits",
        description="Every configured rule for users and client-ids, used or not. Each broker applies the limits by itself; those of topic changes are the controller's.",
        queries=tuple(
            Query(expr=_one_per_rule(scope, limit)) for _, limit, _ in _LIMITS
        ),
        columns=(
            *columns.rule(),
            *(
                columns.number(title, letter, unit)
                for letter, (title, _, unit) in zip("ABCD", _LIMITS, strict=True)
            ),
            columns.cluster(scope.site),
        ),
        sort="Produce",
    )


def _one_per_rule(scope: Scope, limit: catalog.Family) -> str:
    values = scope.by("max", scope.of(limit), *RULE)
    return f'label_join({values}, "entity", " / ", {", ".join(map(_quoted, RULE))})'


def _quoted(label: str) -> str:
    return f'"{label}"'
