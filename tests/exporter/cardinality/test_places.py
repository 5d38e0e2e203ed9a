from __future__ import annotations

from tests.exporter.cardinality.examples import cardinality, taken, users
from tests.exporter.examples import usage

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.snapshot import EntityUsage


def room(most: int) -> Cardinality:
    """Room for so many entities."""
    return cardinality(max_entities=most)


def shown(bounds: Cardinality, at: float, up: str = "1", /, **amounts: float | EntityUsage) -> str:
    """The users that are shown when these nodes have answered: of each what it uses is given, or all that is known of it."""
    usages = [
        usage(user=user, usage=amount) if isinstance(amount, float) else amount for user, amount in amounts.items()
    ]
    return "".join(users(bounds.apply(taken(usages, at, up))))


def near(user: str, ratio: float = 0.75) -> EntityUsage:
    """A user close to the limit."""
    return usage(user=user, limit=100.0, usage=ratio * 100.0)


def test_a_clock_that_is_set_back_holds_nothing_for_ever() -> None:
    """What was decided in the future is over."""
    bounds = room(1)
    assert shown(bounds, 10_000, a=2.0, b=1.0) == "a"
    assert shown(bounds, 0, a=2.0, b=5.0) == "b"


def test_names_are_forgotten() -> None:
    """However many come and go, what is remembered is bounded by those that are there, and what was known of others is not theirs."""
    bounds = room(10)
    for at in range(0, 3_000, 15):
        crowd = {f"{at}-{number:02}": float(number) for number in range(50)}
        strongest = "".join(sorted(crowd, key=lambda name: crowd[name])[-10:])
        assert shown(bounds, at, **crowd) == strongest
        assert len(bounds._identities._numbers) <= 1_200
    assert len(bounds._identities.known) <= 2_500


def test_one_away_is_not_taken_for_another() -> None:
    """A place that is kept for a node that is silent is that of one identity, however many others come and go meanwhile."""
    bounds = room(1)
    there = usage(user="a", broker="2", usage=2.0)
    assert shown(bounds, 0, "12", a=there, b=1.0) == "a"
    for at in range(1, 200):
        crowd = {f"{at}-{number}": 1.0 for number in range(50)}
        assert shown(bounds, at, "1", **crowd) == ""
    assert shown(bounds, 200, "12", a=there, b=1.0) == "a"


def test_a_place_that_does_not_make_way_yet_protects_no_other() -> None:
    """Of those that a newcomer could push out some came a moment ago: it takes the next place."""
    bounds = room(3)
    assert shown(bounds, 0, x=5.0, y=5.0, c=3.0, z=0.1) == "cxy"
    assert shown(bounds, 290, a=1.0, b=2.0, c=3.0, z=0.1) == "abc"
    crowd = {"a": 1.0, "b": 2.0, "c": 3.0, "g": 100.0}
    assert shown(bounds, 300, **crowd, n=near("n")) == "bgn"
