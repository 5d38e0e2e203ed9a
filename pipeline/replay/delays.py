"""Requests that a replay delays against the log, by their place in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import Column
from ..history.schema import PLACE
from .compiled import Codes, Ints


class DelayedRequests(NamedTuple):
    """Requests that some candidate delays."""

    names: Column
    """Names of files."""
    files: Codes
    """Number of the file's name by request."""
    positions: Ints
    """Place in the file by request."""
    late_ms: Ints
    """Delay by candidate and request, ms, as `lateness` has it."""


def all_have_places(rows: pa.Table) -> bool:
    """Return whether each row has a file and a position (`PLACE`); rows of other programs may lack them."""
    return all(name in rows.column_names and rows[name].null_count == 0 for name in PLACE)


def delays_of(rows: pa.Table, delayed: Iterable[DelayedRequests], candidates: int) -> Ints | None:
    """
    Return the delay by candidate and row, ms; 0 for a row that is not among the delayed requests.

    It is None if places do not name rows: a row has none, two rows have the same one, as where a log was replaced by
    another of its name, or no row has that of a delayed request.

    Args:
        rows: requests with `PLACE`, sorted by it.
        delayed: requests that some candidate delays, in any order.
        candidates: number of candidates.

    """
    if not all_have_places(rows):
        return None
    encoded = rows["file"].combine_chunks().dictionary_encode()
    codes, positions = encoded.indices.to_numpy(), rows["position"].to_numpy()
    # rows are sorted by place, so two rows with the same place follow each other
    if ((np.diff(codes) == 0) & (np.diff(positions) == 0)).any():
        return None
    # the rows of the file with the number `code` are those from `starts[code]` to `starts[code + 1]`
    starts = np.searchsorted(codes, np.arange(len(encoded.dictionary) + 1))
    late_ms = np.zeros((candidates, len(rows)), np.int64)
    for part in delayed:
        code_by_name: Column = pc.index_in(part.names, encoded.dictionary)
        code_by_request = code_by_name.fill_null(-1).to_numpy()[part.files]
        for code in np.unique(code_by_request).tolist():
            if code < 0:  # no row is of this file
                return None
            requests_of_file = np.flatnonzero(code_by_request == code)
            sought = part.positions[requests_of_file]
            positions_of_file = positions[starts[code] : starts[code + 1]]
            places = np.searchsorted(positions_of_file, sought)
            if places.max() >= len(positions_of_file) or (positions_of_file[places] != sought).any():
                return None
            late_ms[:, starts[code] + places] = part.late_ms[:, requests_of_file]
    return late_ms
