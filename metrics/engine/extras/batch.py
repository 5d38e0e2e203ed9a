"""
Many records at once, given as NumPy arrays: for replaying traces.

The results are those of the scalar interface, record by record and to the last bit, since it is the same engine that
works through the arrays in their order. What is saved is Python's part between two records, in a compiled build only.

The only module of the engine that needs NumPy, which takes a tenth of a second to import.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...kafka.principal import Principal
from ..client_quota_manager import ClientQuotaManager
from ..errors import MalformedBatch
from ..metric import Breach
from ..sensor import Sensor
from .record_loop import record_each, record_runs, throttle_each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Violations:
    """Records of a batch that exceeded a bound, with an element for each, in their order."""

    records: NDArray[np.int64]
    """Their numbers in the batch."""

    values: NDArray[np.float64]
    """What was measured."""

    bounds: NDArray[np.float64]
    """What it may be."""


def record_many(
    sensors: Sequence[Sensor], entities: ArrayLike, values: ArrayLike, times_ms: ArrayLike, *, check_quotas: bool = True
) -> Violations:
    """
    Do `Sensor.record` for each record, and go on after a violation.

    Args:
        sensors: of the entities.
        entities: for each record the index of its sensor.
        values: what to record, finite or not, as `Sensor.record` takes it.
        times_ms: epoch ms of each record, or one for all.
        check_quotas: as in `Sensor.record`.

    Raises:
        MalformedBatch: the arrays do not fit each other or the sensors; nothing was recorded.

    """
    owners, costs, when = _columns(len(sensors), entities, values, times_ms)
    # Where no sensor hears of another's records, the work is done one sensor after the other.
    apart = _are_apart(sensors)
    order = _by_entity(owners, len(sensors)) if apart else np.arange(owners.size)
    work = record_runs if apart else record_each
    lists = owners[order].tolist(), costs[order].tolist(), _times(when[order])
    breaches = work(list(sensors), *lists, check_quotas=check_quotas)
    records = order[[number for number, _ in breaches]] if breaches else order[:0]
    return _violations(records, [breach for _, breach in breaches])


def _are_apart(sensors: Sequence[Sensor]) -> bool:
    return len(set(sensors)) == len(sensors) and not any(sensor.parents for sensor in sensors)


def _by_entity(owners: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    # Numbers of 16 bits are sorted in linear time.
    keys = owners.astype(np.uint16) if count <= 1 << 16 else owners
    return np.argsort(keys, kind="stable")


def _times(when: NDArray[np.int64]) -> list[int]:
    # records of one moment share one integer object
    if when.size and when.min() == when.max():
        return [int(when[0])] * when.size
    times_ms: list[int] = when.tolist()
    return times_ms


def _violations(records: NDArray[np.int64], breaches: list[Breach]) -> Violations:
    order = np.argsort(records)
    return Violations(
        records=records[order],
        values=np.array([breach.value for breach in breaches], np.float64)[order],
        bounds=np.array([breach.bound for breach in breaches], np.float64)[order],
    )


def throttle_times_ms(
    manager: ClientQuotaManager,
    clients: Sequence[tuple[Principal, str]],
    entities: ArrayLike,
    values: ArrayLike,
    times_ms: ArrayLike,
) -> NDArray[np.int64]:
    """
    Do `ClientQuotaManager.maybe_record_and_get_throttle_time` for each request, and return the ms to throttle it.

    Args:
        manager: of the requests' quota type.
        clients: principals and client-ids.
        entities: for each request the index of its client.
        values: its costs, in the unit of the quota type.
        times_ms: epoch ms of each request, or one for all.

    Raises:
        MalformedBatch: the arrays do not fit each other or the clients; nothing was recorded.

    """
    columns = _columns(len(clients), entities, values, times_ms)
    lists = [column.tolist() for column in columns]
    return np.array(throttle_each(manager, list(clients), *lists), np.int64)


def _columns(
    count: int, entities: ArrayLike, values: ArrayLike, times_ms: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    owners = _whole("entities", entities)
    when = _whole("times_ms", times_ms)
    costs = np.asarray(values, np.float64)
    if when.ndim == 0:
        when = np.broadcast_to(when, owners.shape)
    if owners.ndim != 1 or not owners.shape == costs.shape == when.shape:
        shapes = f"{owners.shape}, {costs.shape} and {when.shape}"
        raise MalformedBatch(f"entities, values and times have the shapes {shapes}")
    if owners.size and not 0 <= owners.min() <= owners.max() < count:
        raise MalformedBatch(f"entities are numbered from {owners.min()} to {owners.max()}, but there are {count}")
    return owners, costs, when


def _whole(name: str, numbers: ArrayLike) -> NDArray[np.int64]:
    array: NDArray[Any] = np.asarray(numbers)
    if array.size and array.dtype.kind not in "iu":
        raise MalformedBatch(f"{name} must be whole numbers, not {array.dtype}")
    return array.astype(np.int64)
