"""The catalog keeps Prometheus's conventions and OpenTelemetry's."""

import re

import pytest
from tests.exporter.otlp.messages import translated

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType, client_families, families, job_families
from quotascope.metrics.catalog.otel_names import UCUM, otel_name, ucum
from quotascope.metrics.kafka.entities import QuotaType

FAMILIES = [*families(), *client_families(), *job_families()]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_keeps_the_conventions(family: Family) -> None:
    """
    A family begins with the part of the system that it speaks of, and its source is named.

    Only counters end in ``_total``, which shows a reader that ``rate()`` may be used. Label names are plain and do not
    repeat. ``HELP`` is one line of text that ends like a sentence.
    """
    assert re.fullmatch(r"(kafka_client|kafka_quota|process|quotascope|spark)_[a-z_]+", family.name)
    assert family.name.endswith("_total") == (family.type is FamilyType.COUNTER)
    assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in family.labels)
    assert len(set(family.labels)) == len(family.labels)
    assert re.fullmatch(r"\S[^\n]*\.", family.help)
    assert ".md" not in family.help, "readers of a scrape have the documentation's titles, not its files"
    assert family.source


def test_families_differ_and_have_a_unit() -> None:
    """Families have different names; the table has the unit of each family in UCUM, and no others."""
    for names in ([family.name for family in FAMILIES], [otel_name(family) for family in FAMILIES]):
        assert len(set(names)) == len(names)
    assert {family.unit for family in FAMILIES} == set(UCUM)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (catalog.USAGE[QuotaType.PRODUCE], "kafka.quota.produce"),
        (catalog.LIMIT[QuotaType.PRODUCE], "kafka.quota.produce_limit"),
        (catalog.USAGE[QuotaType.REQUEST], "kafka.quota.request_threads"),
        (catalog.LIMIT[QuotaType.CONTROLLER_MUTATION], "kafka.quota.controller_mutation_limit"),
        (catalog.REQUEST_THROTTLED_SECONDS, "kafka.quota.request_throttled"),
        (catalog.UTILIZATION, "kafka.quota.utilization"),
        (catalog.SOURCE_UP, "quotascope.source_up"),
        (catalog.CLIENT_THROTTLED_SECONDS, "kafka.client.throttled"),
        (catalog.SPARK_TASK_RETRIES, "spark.task_retries"),
    ],
)
def test_names(family: Family, name: str) -> None:
    """The namespace has dots; type and unit are left to themselves."""
    assert otel_name(family) == name


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_prometheus_makes_our_names_of_them(family: Family) -> None:
    """The translation of OTLP gives the name that /metrics has, and OpenTelemetry allows the name."""
    name = otel_name(family)
    assert translated(name, ucum(family), counts=family.type is FamilyType.COUNTER) == family.name
    assert re.fullmatch(r"[a-z][a-z0-9_.]{1,254}", name)
