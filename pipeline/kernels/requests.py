"""What the replay kernels work on: requests as columns, and what a candidate means for them."""

from typing import Final, NamedTuple

from .compiled import Codes, Flags, Floats, Ints

PRODUCE: Final = 0
FETCH: Final = 1
REQUEST: Final = 2
MUTATION: Final = 3
KINDS: Final = 4
"""The quota types, as kernels number them; a request charges at most one of them beside `REQUEST`."""
NO_KIND: Final = -1


class Requests(NamedTuple):
    """Requests in order of decision within each group of entities that can meet in a sensor."""

    times: Ints
    """Decision, epoch ms."""
    pairs: Codes
    """Number of the entity on its broker."""
    connections: Codes
    kinds: Flags
    """The quota type beside `REQUEST` that is charged, `NO_KIND` for none."""
    sizes: Ints
    """Bytes or partitions that it is charged."""
    as_logged: Flags
    """1 where the log shows a Fetch answered empty, or a mutation refused: it was not charged in the end."""
    permissive: Flags
    """1 where the version is too old for a mutation to be refused."""
    percents: Floats
    """Thread time in percent-seconds that `REQUEST` is charged, NaN for none."""


class Scale(NamedTuple):
    """Sizes of the flat tables."""

    candidates: int
    pairs: int
    connections: int
    slots: int
    """Tables of measurements: sensors that candidates share are measured once."""
    mutations: int
    saturate: int
    """1 to keep throttles above 24.8 days as long as they are."""


class Limits(NamedTuple):
    """What each candidate allows."""

    limits: Floats
    """By kind, pair and candidate; infinite for no limit."""
    ranks: Codes
    """The candidates, the strictest first."""
    lowest: Floats
    """By kind, pair and rank: the lowest limit of the candidates from that rank on."""
    slots: Codes
    """By candidate and kind: which table of measurements."""
    kinds: Flags
    """By slot: the quota type that is measured."""
    longest: Ints
    """By candidate: the longest request throttle, ms."""


class Outcomes(NamedTuple):
    """What the mutation quotas decided, by candidate and mutation."""

    throttles: Ints
    refused: Flags
    noted: Flags
    """By mutation: 1 where any candidate throttles or refuses it."""
    numbers: Codes
    """By request: number of its mutation, negative for none."""
    granted: Ints
    """By mutation: partitions that the log shows as granted, before the rest of the request was refused: the mutation before."""


Outcomes.WRITTEN = True  # type: ignore[attr-defined]
