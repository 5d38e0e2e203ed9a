"""
What a sensor would ask its clients to wait under any limit.

Requests arrive as logged (open loop). Then a higher limit never throttles longer, and the lowest one that will do can be searched for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, WindowConfig

from ..followed import Followed
from ..kernels.requests import FETCH, PRODUCE
from ..whatif.frame import Frame, entities_of, frame_of
from .debt import DebtSensor
from .rate import bandwidth, request_time

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of the cluster's quotas, and the release that measures by them."""

    client: WindowConfig = field(default_factory=WindowConfig)
    """`quota.window.num`, `quota.window.size.seconds`"""
    controller: WindowConfig = field(default_factory=WindowConfig)
    """`controller.quota.window.num`, `controller.quota.window.size.seconds`"""
    followed: Followed = field(default_factory=Followed)


class Sensor(Protocol):
    """The requests that one quota would check."""

    @property
    def kind(self) -> QuotaType:
        """Of the quota."""
        ...

    @property
    def times_ms(self) -> Ints:
        """When they are checked: ms since 1970, in order."""
        ...

    @property
    def window_ms(self) -> int:
        """One window of the quota."""
        ...

    @property
    def enough(self) -> float:
        """A limit under which nothing is throttled."""
        ...

    def throttles_ms(self, limits: Floats) -> Ints:
        """Ms to wait, as an array of limits x requests; a higher limit never asks for more."""
        ...


def sensors_of(rows: pa.Table, windows: Windows) -> Iterator[Sensor]:
    """
    The sensors of a broker that requests would be measured by; one for each quota type that checks any of them.

    Args:
        rows: of history, of one broker, those that share quotas, in order of their decisions.
        windows: of the quotas.

    """
    frame = _frame(rows)
    kinds = frame.requests.kinds
    longest_ms = windows.followed.release.longest_rate_ms
    for kind, number in ((QuotaType.PRODUCE, PRODUCE), (QuotaType.FETCH, FETCH)):
        if np.any(kinds == number):
            yield bandwidth(kind, frame, kinds == number, windows.client, longest_ms)
    if not np.all(np.isnan(frame.requests.percents)):
        yield request_time(frame, windows.client, longest_ms)


def mutations_of(rows: pa.Table, windows: Windows) -> DebtSensor:
    """
    The sensor of the active controller that mutations would be measured by.

    Args:
        rows: of history, of all brokers, those that mutate topics and share a quota.
        windows: of the quotas.

    """
    frame = _frame(rows)
    order = np.argsort(frame.mutation_times, kind="stable")
    refused = frame.requests.as_logged == 1
    charged = np.where(refused, frame.charged, frame.requests.sizes)
    return DebtSensor(
        times_ms=frame.mutation_times[order],
        values=charged[order].astype(np.float64),
        permissive=frame.requests.permissive[order] == 1,
        config=windows.controller,
    )


def _frame(rows: pa.Table) -> Frame:
    entities, codes = entities_of(rows)
    return frame_of(rows, entities, codes, np.zeros(len(rows), np.int64))
