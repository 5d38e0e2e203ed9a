from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.exposition.splice import Splice

numbers = st.sets(st.integers(0, 30)).map(sorted)


@given(before=numbers, after=numbers)
def test_lists_beside_the_sorted_one_follow(
    before: list[int], after: list[int]
) -> None:
    """What was made for items that stay is kept, and the fresh ones are put where they belong."""
    fresh = [item for item in after if item not in before]
    change = Splice.of(
        len(before),
        [place for place, item in enumerate(before) if item not in after],
        [bisect_left(before, item) for item in fresh],
    )
    assert change.apply(before, fresh) == after


@given(before=numbers, after=numbers)
def test_places_in_the_new_list_tell_the_same(
    before: list[int], after: list[int]
) -> None:
    """Where fresh items are now says as much as what they come before."""
    gone = [place for place, item in enumerate(before) if item not in after]
    fresh = [place for place, item in enumerate(after) if item not in before]
    change = Splice.between(len(before), gone, fresh)
    assert change.apply(before, [after[place] for place in fresh]) == after
    assert change.fresh_places() == fresh


def test_nothing_is_kept_of_another_list() -> None:
    """An order that has nothing to do with the last one starts anew."""
    assert Splice.anew(2).apply([1, 2, 3], [8, 9]) == [8, 9]
