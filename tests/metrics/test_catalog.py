"""The catalog keeps Prometheus's conventions and OpenTelemetry's."""

from __future__ import annotations

import re

import pytest
from tests.exporter.otlp.messages import translated

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType, client_families, families, job_families
from quotascope.metrics.catalog.otel_names import UCUM, otel_name, ucum

FAMILIES = [*families(), *client_families(), *job_families()]


def test_names_are_unique() -> None:
    """Two families of one name would break the exposition."""
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
class TestFamily:
    """What holds for every single family."""

    def test_name_is_ours(self, family: Family) -> None:
        """A family begins with the part of the system that it speaks of."""
        assert re.fullmatch(r"(kafka_client|kafka_quota|process|quotascope|spark)_[a-z_]+", family.name)

    def test_only_counters_end_in_total(self, family: Family) -> None:
        """The suffix shows a reader that ``rate()`` may be used."""
        assert family.name.endswith("_total") == (family.type is FamilyType.COUNTER)

    def test_labels_are_valid(self, family: Family) -> None:
        """Label names are plain and do not repeat."""
        assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in family.labels)
        assert len(set(family.labels)) == len(family.labels)

    def test_help_is_one_sentence_or_more(self, family: Family) -> None:
        """``HELP`` is one line of text that ends like a sentence."""
        assert re.fullmatch(r"\S[^\n]*\.", family.help)

    def test_source_is_named(self, family: Family) -> None:
        """A reader can look the value up where it comes from."""
        assert family.source


def test_every_family_has_a_unit() -> None:
    """The table has the unit of each family in UCUM, and no others."""
    assert {family.unit for family in FAMILIES} == set(UCUM)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (catalog.PRODUCE_BYTES_PER_SECOND, "kafka.quota.produce"),
        (catalog.PRODUCE_LIMIT, "kafka.quota.produce_limit"),
        (catalog.REQUEST_THREADS, "kafka.quota.request_threads"),
        (catalog.CONTROLLER_MUTATION_LIMIT, "kafka.quota.controller_mutation_limit"),
        (catalog.THROTTLED_SECONDS, "kafka.quota.throttled"),
        (catalog.UTILIZATION, "kafka.quota.utilization"),
        (catalog.SOURCE_UP, "quotascope.source_up"),
        (catalog.CLIENT_THROTTLED_SECONDS, "kafka.client.throttled"),
        (catalog.SPARK_TASK_RETRIES, "spark.task_retries"),
    ],
)
def test_names(family: Family, name: str) -> None:
    """The namespace has dots; type and unit are left to themselves."""
    assert otel_name(family) == name


def test_prometheus_makes_our_names_of_them() -> None:
    """For every family, the translation of OTLP gives the name that /metrics has."""
    for family in FAMILIES:
        counts = family.type is FamilyType.COUNTER
        name = translated(otel_name(family), ucum(family), counts=counts)
        assert name == family.name


def test_they_are_names_and_differ() -> None:
    """OpenTelemetry allows them, and no two families become one."""
    names = [otel_name(family) for family in FAMILIES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_.]{1,254}", name) for name in names)
