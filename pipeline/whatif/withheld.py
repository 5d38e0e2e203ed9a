"""
The size of a Fetch that was answered empty.

The log has its empty answer only. The client asks for the same data again, so its size is taken to be that of its connection's next
Fetch that was answered; without one, 0. It is charged and given back at once, and matters for its own throttle only.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import Codes, Ints


def fill_withheld(
    sizes: Ints,
    fetches: NDArray[np.bool_],
    withheld: NDArray[np.bool_],
    connections: Codes,
) -> None:
    """
    Fill in the sizes of withheld Fetches.

    Args:
        sizes: by request, written to.
        fetches: whether it is a Fetch.
        withheld: whether it is one of unknown size.
        connections: of each; requests of a connection are in their order.

    """
    if not withheld.any():
        return
    rows = np.flatnonzero(fetches)
    rows = rows[np.argsort(connections[rows], kind="stable")]
    places = np.arange(len(rows))
    last = len(rows)
    known = np.where(withheld[rows], last, places)
    following = np.minimum.accumulate(known[::-1])[::-1]
    unknown = withheld[rows] & (following < last)
    source = rows[np.minimum(following, last - 1)]
    unknown &= connections[source] == connections[rows]
    sizes[rows[unknown]] = sizes[source[unknown]]
