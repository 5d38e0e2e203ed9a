from __future__ import annotations

from quotascope.metrics.catalog import client_families, families, job_families
from quotascope.metrics.catalog.units import UCUM

FAMILIES = [*families(), *client_families(), *job_families()]


def test_every_family_has_a_unit() -> None:
    """Whoever writes a new word into the catalog says what it is in UCUM."""
    words = {family.unit for family in FAMILIES}
    assert words - UCUM.keys() == set()


def test_no_unit_is_a_leftover() -> None:
    """The table holds what the catalog uses, and nothing else."""
    words = {family.unit for family in FAMILIES}
    assert UCUM.keys() - words == set()
