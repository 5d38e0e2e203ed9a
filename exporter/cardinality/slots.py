"""Which identities of one quota type are shown, when there are more than there is room for."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from .identity import HOLD_SECONDS
from .pressure import QUIET, Pressure

_CLEARLY_MORE: Final = 2.0

Name = TypeVar("Name", bound=tuple[str, ...])
Row = TypeVar("Row")


@dataclass(slots=True, kw_only=True)
class _Slot:
    """The place of one identity that is shown."""

    since: float
    seen_at: float
    pressure: Pressure
    """The highest rank of the last minutes, and the weight it came with."""
    pressed_at: float
    nodes: tuple[str, ...] = ()
    """Where it was when it was last seen."""

    def observe(self, now: Pressure, at: float) -> None:
        """See the identity under this pressure."""
        self.seen_at = at
        if now[0] >= self.pressure[0] or _past(self.pressed_at, at):
            self.pressure, self.pressed_at = now, at

    def may_return(self, nodes: frozenset[str], at: float) -> bool:
        """Whether it may be there, but on a node that has not answered."""
        return not (nodes.issuperset(self.nodes) or _past(self.seen_at, at))

    def yields(self, challenger: Pressure, at: float) -> bool | None:
        """Whether it makes way; None when it does not yet, but a weaker challenger will not move others either."""
        if challenger[0] != self.pressure[0]:
            return challenger[0] > self.pressure[0]
        if not _past(self.since, at):
            return None
        return challenger[1] > _CLEARLY_MORE * self.pressure[1]


class Slots(Generic[Name, Row]):
    """
    Keeps who is shown from one snapshot to the next.

    An identity that is shown stays so unless another has a higher rank (throttled, near its limit, neither)
    than it had in the last five minutes, or, after five minutes, more than twice its weight. One
    whose broker is down keeps its place as long, so that a moment of that changes nothing.
    What is decided does not depend on the order of the identities.

    Args:
        most: How many there is room for.
        pressure: How much an identity matters, by its rows.
        node: Where a row was measured.

    """

    def __init__(
        self,
        most: int,
        pressure: Callable[[Sequence[Row]], Pressure],
        node: Callable[[Row], str],
    ) -> None:
        self._most = most
        self._pressure = pressure
        self._node = node
        self._slots: dict[Name, _Slot] = {}
        self._all: tuple[float, Callable[[], Collection[Name]]] = (0.0, tuple)
        """When all were shown last, and who that was."""

    def __len__(self) -> int:
        return len(self._slots) + len(self._all[1]())

    @property
    def contested(self) -> bool:
        """Whether it is known who has a place, because there was not one for everybody a short while ago."""
        return bool(self._slots)

    def show_all(self, names: Callable[[], Collection[Name]], at: float) -> None:
        """
        There is room for everybody, and no place is contested.

        Args:
            names: Tells who it is, when that matters.
            at: Unix time in seconds.

        """
        self._all = at, names

    def shown(
        self, names: Mapping[Name, Sequence[Row]], nodes: frozenset[str], at: float
    ) -> AbstractSet[Name]:
        """Those of these identities that are shown at ``at`` (Unix time in seconds), when these nodes have answered."""
        fits = len(names) <= self._most
        if fits and not self._awaits(names, nodes, at):
            self._slots.clear()
            self.show_all(list(names).copy, at)
            return names.keys()
        self._occupy()
        pressures = {name: self._pressure(rows) for name, rows in names.items()}
        for name in self._slots.keys() & pressures.keys():
            self._slots[name].observe(pressures[name], at)
        self._free(names, nodes, at)
        self._admit(pressures, at)
        chosen = self._slots.keys() & names.keys()
        for name in chosen:
            slot = self._slots[name]
            silent = (node for node in slot.nodes if node not in nodes)
            slot.nodes = (*map(self._node, names[name]), *silent)
        return names.keys() if fits else chosen

    def _awaits(
        self, names: Mapping[Name, Sequence[Row]], nodes: frozenset[str], at: float
    ) -> bool:
        """Whether somebody who has a place is away because a node has not answered."""
        return any(
            name not in names and slot.may_return(nodes, at)
            for name, slot in self._slots.items()
        )

    def _occupy(self) -> None:
        before, names = self._all
        for name in names():
            self._slots[name] = _new((QUIET, 0.0), before)
        self._all = before, tuple

    def _free(
        self,
        names: Mapping[Name, Sequence[Row]],
        nodes: frozenset[str],
        at: float,
    ) -> None:
        self._slots = {
            name: slot
            for name, slot in self._slots.items()
            if name in names or slot.may_return(nodes, at)
        }

    def _admit(self, pressures: Mapping[Name, Pressure], at: float) -> None:
        outside = (
            (now, name) for name, now in pressures.items() if name not in self._slots
        )
        challengers = iter(heapq.nlargest(self._most, outside))
        for now, name in challengers:
            if len(self._slots) == self._most:
                self._compete(now, name, challengers, at)
                return
            self._slots[name] = _new(now, at)

    def _compete(
        self,
        now: Pressure,
        name: Name,
        others: Iterator[tuple[Pressure, Name]],
        at: float,
    ) -> None:
        weakest = sorted((slot.pressure, name) for name, slot in self._slots.items())
        for _, holder in weakest:
            yields = self._slots[holder].yields(now, at)
            if yields is None:
                continue
            if not yields:
                return
            del self._slots[holder]
            self._slots[name] = _new(now, at)
            following = next(others, None)
            if following is None:
                return
            now, name = following


def _new(pressure: Pressure, at: float) -> _Slot:
    return _Slot(since=at, seen_at=at, pressure=pressure, pressed_at=at)


def _past(since: float, at: float) -> bool:
    """Whether what was decided then holds no more."""
    return abs(at - since) >= HOLD_SECONDS
