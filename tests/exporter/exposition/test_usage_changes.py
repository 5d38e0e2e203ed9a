from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import usage

from quotascope.exporter.difference import difference
from quotascope.exporter.exposition.usage_changes import UsageChanges
from quotascope.exporter.snapshot import EntityUsage

CROWD = [usage(user=f"user-{at:03}") for at in range(150)]
"""More than are compared at once."""
NEW = [usage(user=f"new-{at}") for at in range(3)]


@st.composite
def snapshots(draw: st.DrawFn) -> list[EntityUsage]:
    """The crowd, but for some that left, some that came or changed their place, and some that used more."""
    usages = list(CROWD)
    for at in draw(st.lists(st.integers(0, 100), max_size=6)):
        del usages[at : at + draw(st.integers(1, 3))]
    for at in draw(st.lists(st.integers(0, 100), max_size=6)):
        usages.insert(at, draw(st.sampled_from([*CROWD[:3], *NEW])))
    for at in draw(st.sets(st.integers(0, 100))):
        usages[at] = replace(usages[at], usage=7.0, detailed=draw(st.booleans()))
    return usages


@given(before=snapshots(), now=snapshots())
def test_entities_and_their_usages_are_compared_in_one_go(
    before: list[EntityUsage], now: list[EntityUsage]
) -> None:
    """Who left and came is what the entities alone tell, and of all others it is known whether their usage is the same."""
    changes = UsageChanges.between(before, now)
    assert (changes.gone, changes.fresh) == difference(
        [id(each.entity) for each in before], [id(each.entity) for each in now]
    )
    stayed = [at for at in range(len(before)) if at not in changes.gone]
    pairs = [(before[at], now[changes.moved[at]]) for at in stayed]
    assert all(old.entity is new.entity for old, new in pairs)
    others = [(old, new) for old, new in pairs if old is not new]
    told = changes.others
    assert list(zip(told.before, told.now, strict=True)) == others
    assert [now[place] for place in told.places] == told.now
    turned = [new for old, new in others if old.detailed is not new.detailed]
    assert told.turned().now == turned


def test_usages_are_the_same_only_as_objects() -> None:
    """An equal one was made anew: something of it may have changed in between."""
    changes = UsageChanges.between(CROWD[:3], [CROWD[0], replace(CROWD[1]), CROWD[2]])
    assert (changes.gone, changes.fresh, changes.others.places) == ([], [], [1])


def test_equal_entities_are_the_same() -> None:
    """All are made anew with each change of limits, and hardly any of them is another one."""
    anew = [replace(each, entity=replace(each.entity)) for each in CROWD]
    anew[7] = replace(anew[7], entity=replace(anew[7].entity, limit=9.0))
    changes = UsageChanges.between(CROWD, anew)
    assert (changes.gone, changes.fresh) == ([7], [7])
    assert changes.others.places == [at for at in range(len(CROWD)) if at != 7]
