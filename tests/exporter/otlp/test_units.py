from __future__ import annotations

from quotascope.exporter.otlp.units import UCUM
from quotascope.metrics.catalog import families


def test_every_family_has_a_unit() -> None:
    """Whoever writes a new word into the catalogue says what it is in UCUM."""
    words = {family.unit for family in families()}
    assert words - UCUM.keys() == set()


def test_no_unit_is_a_leftover() -> None:
    """The table holds what the catalogue uses, and nothing else."""
    words = {family.unit for family in families()}
    assert UCUM.keys() - words == set()
