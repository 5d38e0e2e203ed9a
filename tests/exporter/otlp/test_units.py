from __future__ import annotations

import re

from quotascope.exporter.otlp.units import UCUM, ucum
from quotascope.metrics.catalog import FamilyType, families


def test_every_family_has_a_unit() -> None:
    """Whoever writes a new word into the catalogue says what it is in UCUM."""
    words = {family.unit for family in families()}
    assert words - UCUM.keys() == set()


def test_no_unit_is_a_leftover() -> None:
    """The table holds what the catalogue uses, and nothing else."""
    words = {family.unit for family in families()}
    assert UCUM.keys() - words == set()


def test_units_repeat_the_names() -> None:
    """
    Prometheus appends to a name what its unit says, unless it is there already: it always is.

    Its rules: By, s and 1 of a gauge add bytes, seconds and ratio, /s adds per_second, braces add nothing.
    """
    added = {"By": "bytes", "s": "seconds", "1": "ratio", "": None}
    for family in families():
        words = family.name.removesuffix("_total").split("_")
        unit, slash, per = re.sub(r"\{\w+\}", "", ucum(family)).partition("/")
        if added[unit] is not None:
            assert added[unit] in words, family.name
        if slash:
            assert per == "s"
            assert {"per", "second"} <= set(words), family.name


def test_only_counters_are_totals() -> None:
    """Prometheus appends _total to monotonic sums: the name has it, and only theirs has."""
    for family in families():
        is_total = family.name.endswith("_total")
        assert is_total == (family.type is FamilyType.COUNTER), family.name
