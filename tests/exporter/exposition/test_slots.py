from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import usage

from quotascope.exporter.exposition.slots import Key, Slots
from quotascope.exporter.snapshot import Entity

ENTITIES = [usage(user=f"user-{at:03d}").entity for at in range(120)]
KEYS: list[Key] = [(entity.user, "", (1, "1")) for entity in ENTITIES]
steps = st.lists(st.sets(st.integers(0, 119)).map(sorted), min_size=1, max_size=5)


def keyed(places: list[int]) -> list[tuple[Key, Entity]]:
    """The entities at these places, as a section hands them over."""
    return [(KEYS[at], ENTITIES[at]) for at in places]


@given(first=st.sets(st.integers(0, 119)).map(sorted), later=steps)
def test_lists_follow_whoever_comes_and_goes(
    first: list[int], later: list[list[int]]
) -> None:
    """What was kept of an entity stays with it, in order, and nothing stays of one that left."""
    slots = Slots()
    slots.renew(keyed(first))
    made = ["" if each is None else each.user for each in slots.entities]
    before = first
    for now in later:
        gone = [KEYS[at] for at in before if at not in now]
        came = [at for at in now if at not in before]
        assert slots.change(gone, keyed(came))
        made = slots.follow(made, "")
        assert [made[slot] for slot in slots.used] == [
            "" if at in came else ENTITIES[at].user for at in now
        ]
        assert len([text for text in made if text]) == len(now) - len(came)
        for at in came:
            made[slots.used[slots.place(KEYS[at])]] = ENTITIES[at].user
        assert [made[slot] for slot in slots.used] == [ENTITIES[at].user for at in now]
        before = now


def test_two_with_the_same_key_do_not_fit() -> None:
    """They have no order, so that all has to be sorted anew."""
    slots = Slots()
    slots.renew(keyed([1, 2, 3]))
    assert not slots.change([], keyed([2]))


def test_gaps_do_not_outnumber_the_entities_for_long() -> None:
    """When most have left, the lists shrink with the next change."""
    slots = Slots()
    slots.renew(keyed(list(range(120))))
    slots.change(KEYS[2:], [])
    slots.change([], keyed([50]))
    assert len(slots) < 10
