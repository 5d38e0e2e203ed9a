from __future__ import annotations

import pytest
from tests.exporter.examples import usage

from quotascope.exporter.exposition.whereabouts import Whereabouts
from quotascope.exporter.snapshot import Entity

A, B, C, D = (usage(user=name).entity for name in "abcd")


@pytest.mark.parametrize("mixed", [[A, C, B, D], [C, A, B, D], [D, C, B, A]])
def test_entities_that_stand_in_another_sequence(mixed: list[Entity]) -> None:
    """Each is found where it is."""
    whereabouts = Whereabouts(mixed)
    for some in ([A, B], [C], [D]):
        places = whereabouts.of(some)
        found = (
            mixed[places] if isinstance(places, slice) else [mixed[at] for at in places]
        )
        assert found == some


def test_entities_in_their_sequence() -> None:
    """Those that follow each other are told as such, none included."""
    whereabouts = Whereabouts([A, B, C, D])
    found = [whereabouts.of(some) for some in ([A, B], [], [C, D])]
    assert found == [slice(0, 2), slice(2, 2), slice(2, 4)]
