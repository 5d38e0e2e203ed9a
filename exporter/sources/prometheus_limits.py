"""The limits that exporters of ours show in a Prometheus server, by entity, and where two exporters disagree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaType, spelled

from ..untrusted import shown
from .prometheus_api import Labels, QueryAnswer
from .prometheus_nodes import NAME, query_of

OWN_LIMIT: Final = {family.name: kind for kind, family in catalog.LIMIT.items()}
OWN_RULE: Final = catalog.RULE_INFO.name
KINDS: Final = {kind.label: kind for kind in QuotaType}
_EXPORTED: Final = "exported_"
_MOST_NAMED: Final = 5

_Value = TypeVar("_Value", float, str)
_Entity: TypeAlias = tuple[QuotaType, str, str]


def own_label(labels: Labels, name: str) -> str:
    """Return the label of the exporter, which Prometheus renames where the target has one of this name."""
    return f"{_EXPORTED}{name}" if f"{_EXPORTED}{name}" in labels else name


def own_value(labels: Labels, name: str) -> str:
    """Return the value of a label of the exporter; empty if there is none."""
    return labels.get(own_label(labels, name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLimit:
    """The limit of an entity, as quotascope exporters show it."""

    limit: float | None
    """In Kafka's unit; infinite for unlimited, None where exporters disagree."""
    rule: str | None
    """The rule that sets it, with its level; None where it is not shown, or exporters disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterLimits:
    """The limits of all entities at one time."""

    limits: Mapping[_Entity, EntityLimit]
    """By quota type, user and client-id."""
    caveats: tuple[str, ...] = ()
    """Sentences about entities whose limits or rules differ between exporters, with the exporters."""


class Answering(Protocol):
    """A server, or a table of its samples, that has the present values of series (`PrometheusApi`)."""

    async def query(self, promql: str, at: float | None = None) -> QueryAnswer:
        """Return the values of a selector at a Unix time."""


async def limits_of_exporters(
    api: Answering, selector: str, at: float, instance_label: str = "instance"
) -> ExporterLimits:
    """
    Return the limits that exporters show at a Unix time.

    A limit or rule on which two exporters disagree is unknown: one of them is of other quotas, or reads them late.

    Args:
        api: the server.
        selector: matchers of the cluster's series.
        at: Unix time in seconds.
        instance_label: label that tells exporters apart.

    Raises:
        SourceError: the server does not answer.

    """
    answer = await api.query(query_of((*OWN_LIMIT, OWN_RULE), selector), at)
    # the exporters that show a rule or a limit, by entity and by rule or limit
    rules: dict[_Entity, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    limits: dict[_Entity, dict[float, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in answer.series:
        name, exporter = one.labels.get(NAME, ""), one.labels.get(instance_label, "")
        entity = own_value(one.labels, "user"), own_value(one.labels, "client_id")
        if name == OWN_RULE and (kind := KINDS.get(own_value(one.labels, "quota_type"))):
            rules[kind, *entity][own_value(one.labels, "rule")].add(exporter)
        elif name in OWN_LIMIT and one.samples:
            limit = OWN_LIMIT[name].in_kafka_unit(float(one.samples[-1][1]))
            if not math.isnan(limit):
                limits[OWN_LIMIT[name], *entity][limit].add(exporter)
    for limited_entity, exporters_by_limit in limits.items():
        # an exporter that shows a rule and no limit has the entity as unlimited
        showing_rule = {exporter for exporters in rules[limited_entity].values() for exporter in exporters}
        if showing_no_limit := showing_rule.difference(*exporters_by_limit.values()):
            exporters_by_limit[math.inf] |= showing_no_limit
    return ExporterLimits(
        # a limit on which exporters disagree leaves its rule unknown, too
        limits={
            entity: EntityLimit(limit=_only(values), rule=_only(rules[entity]) if len(values) == 1 else None)
            for entity, values in limits.items()
        },
        caveats=(*_disagreements("limits", limits), *_disagreements("rules", rules)),
    )


def _only(values: Mapping[_Value, object]) -> _Value | None:
    """Return the only key; None if there are several, or none."""
    return next(iter(values)) if len(values) == 1 else None


def _disagreements(
    what: str, values_of: Mapping[_Entity, Mapping[float, set[str]]] | Mapping[_Entity, Mapping[str, set[str]]]
) -> Iterable[str]:
    """
    Yield a sentence for each group of exporters that disagree, about all entities with several values among them.

    Args:
        what: The word for the values, such as ``limits``.
        values_of: Exporters by entity and value.

    """
    entities: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (kind, user, client_id), values in values_of.items():
        if len(values) > 1:
            exporters = tuple(sorted(set[str]().union(*values.values())))
            entities[exporters].append(f"{spelled(user or None, client_id or None)} ({kind.label})")
    for exporters, names in entities.items():
        yield (
            f"Exporters {_listed(exporters)} show different {what} of {_listed(sorted(names))}: they are unknown here. "
            "Name one exporter in selector, or look why one of them has other quotas."
        )


def _listed(names: Sequence[str]) -> str:
    """Return the first names in words, and the number of the others."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(shown, names[:_MOST_NAMED])) + more
