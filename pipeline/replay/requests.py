"""Requests as the columns that the kernels work on."""

from typing import Final, NamedTuple

from .compiled import Codes, Flags, Floats, Ints, kernel
from .throttle import natural

PRODUCE: Final = 0
FETCH: Final = 1
REQUEST: Final = 2
MUTATION: Final = 3
KINDS: Final = 4
"""The quota types, as kernels number them; a request charges at most one of them beside `REQUEST`."""
NO_KIND: Final = -1


class RequestColumns(NamedTuple):
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


class RequestRow(NamedTuple):
    """One request, taken out of the columns once for all candidates."""

    row: int
    time: int
    """Epoch ms."""
    pair: int
    connection: int
    kind: int
    size: int
    timed: bool
    """Whether the request quota is charged."""


class TableSizes(NamedTuple):
    """Sizes of the flat tables."""

    candidates: int
    pairs: int
    connections: int
    slots: int
    """Tables of measurements: sensors that candidates share are measured once."""
    mutations: int
    longest_ms: int
    """Where the throttle times of rates stop before they are cut to 32 bits (`metrics.KafkaRelease.longest_rate_ms`)."""


@kernel
def is_timed(requests: RequestColumns, row: int) -> bool:
    """Whether the request quota is charged."""
    percent: float = requests.percents[row]
    return percent == percent  # noqa: PLR0124 - NaN is not


@kernel
def request_at(requests: RequestColumns, row: int) -> RequestRow:
    """Return a request of the columns."""
    return RequestRow(
        row=row,
        time=requests.times[row],
        pair=natural(requests.pairs[row]),
        connection=natural(requests.connections[row]),
        kind=requests.kinds[row],
        size=requests.sizes[row],
        timed=is_timed(requests, row),
    )
