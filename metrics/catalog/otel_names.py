"""
Names and units of the families in OpenTelemetry.

A unit is in UCUM. A name has dots after the namespace, and nothing at the end that type and unit say:
``kafka.quota.produce_limit`` with the unit ``By/s``. Prometheus's translation of OTLP (strategy
``UnderscoreEscapingWithSuffixes``, the default) appends just that, so that behind any receiver a family has the name
that it has on /metrics. It could not be sent as it is: the translation makes ``…_per_second_per_second`` of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .family import Family, FamilyType

UCUM: Final[Mapping[str, str]] = {
    "": "",
    "bytes": "By",
    "bytes/s": "By/s",
    "ratio": "1",
    "seconds": "s",
    # What is counted stands in braces: to UCUM a note without meaning, to readers the unit.
    "attempts": "{attempt}",
    "changes": "{change}",
    "connections": "{connection}",
    "connections/s": "{connection}/s",
    "descriptors": "{descriptor}",
    "entities": "{entity}",
    "errors": "{error}",
    "events": "{event}",
    "executors": "{executor}",
    "exports": "{export}",
    "mutations": "{mutation}",
    "mutations/s": "{mutation}/s",
    "offsets": "{offset}",
    "offsets/s": "{offset}/s",
    "points": "{point}",
    "readings": "{reading}",
    "lines": "{line}",
    "requests": "{request}",
    "responses": "{response}",
    "restarts": "{restart}",
    "retries": "{retry}",
    "rules": "{rule}",
    "samples": "{sample}",
    "series": "{series}",
    "sources": "{source}",
    "starts": "{start}",
    "threads": "{thread}",
}
"""By the words of the catalog. Families with values of 0 and 1 only have no unit: "1" is for ratios."""


def ucum(family: Family) -> str:
    """Return the unit of a family. Raises ``KeyError`` for a unit that this table lacks."""
    return UCUM[family.unit]


_NAMESPACES: Final[Mapping[str, str]] = {
    "kafka_client_": "kafka.client.",
    "kafka_quota_": "kafka.quota.",
    "process_": "process.",
    "quotascope_": "quotascope.",
    "spark_": "spark.",
}
_SUFFIXES: Final[Mapping[str, str]] = {
    "By": "_bytes",
    "By/s": "_bytes_per_second",
    "s": "_seconds",
    "1": "_ratio",
}


def otel_name(family: Family) -> str:
    """Return the name of a family in OTLP."""
    name = family.name
    if family.type is FamilyType.COUNTER:
        name = name.removesuffix("_total")
    unit = ucum(family)
    suffix = _SUFFIXES.get(unit, "_per_second" if unit.endswith("}/s") else "")
    name = name.removesuffix(suffix)
    for prefix, namespace in _NAMESPACES.items():
        if name.startswith(prefix):
            return namespace + name.removeprefix(prefix)
    return name
