"""The catalog keeps Prometheus's conventions."""

import re

import pytest

from quotascope.metrics.catalog import (
    Family,
    FamilyType,
    client_families,
    families,
    job_families,
)

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
        assert re.fullmatch(
            r"(kafka_client|kafka_quota|quotascope|spark)_[a-z_]+", family.name
        )

    def test_only_counters_end_in_total(self, family: Family) -> None:
        """The suffix tells a reader that ``rate()`` may be used."""
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
