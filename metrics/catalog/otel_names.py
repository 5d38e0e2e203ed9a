"""
The names of the families in OpenTelemetry.

Dots after the namespace, and nothing at the end that type and unit say: ``kafka.quota.produce_limit`` with the
unit ``By/s``. Prometheus's translation of OTLP (strategy ``UnderscoreEscapingWithSuffixes``, the default)
appends just that, so that behind any receiver a family has the name that it has on /metrics. It could not be
sent as it is: the translation makes ``…_per_second_per_second`` of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .family import Family, FamilyType
from .units import ucum

_NAMESPACES: Final[Mapping[str, str]] = {
    "kafka_client_": "kafka.client.",
    "kafka_quota_": "kafka.quota.",
    "quotascope_": "quotascope.",
    "spark_": "spark.",
}
_SUFFIXES: Final[Mapping[str, str]] = {
    "By/s": "_bytes_per_second",
    "s": "_seconds",
    "1": "_ratio",
}


def otel_name(family: Family) -> str:
    """What a family is called in OTLP."""
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
