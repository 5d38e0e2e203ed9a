"""The loops behind the batch interface: the scalar engine, without the way through Python between two records."""

from ...kafka.principal import Principal
from ..client_quota_manager import ClientQuotaManager
from ..metric import Breach
from ..native import i64
from ..sensor import Sensor


def record_each(
    sensors: list[Sensor], entities: list[int], values: list[float], times_ms: list[int], *, check_quotas: bool
) -> list[tuple[int, Breach]]:
    """Record one after the other, and return which records went past a bound and how."""
    breaches: list[tuple[int, Breach]] = []
    for number in range(len(entities)):
        sensor = sensors[entities[number]]
        breach = sensor.try_record(values[number], times_ms[number], check_quotas)
        if breach is not None:
            breaches.append((number, breach))
    return breaches


def record_runs(
    sensors: list[Sensor], entities: list[int], values: list[float], times_ms: list[int], *, check_quotas: bool
) -> list[tuple[int, Breach]]:
    """Return what `record_each` returns, for records sorted by entity and sensors independent of each other."""
    breaches: list[tuple[int, Breach]] = []
    start: i64 = 0
    count: i64 = len(entities)
    while start < count:
        entity: i64 = entities[start]
        stop: i64 = start + 1
        while stop < count and entities[stop] == entity:
            stop += 1
        sensors[entity].try_record_run(values, times_ms, start, stop, breaches, check_quotas=check_quotas)
        start = stop
    return breaches


def throttle_each(
    manager: ClientQuotaManager,
    clients: list[tuple[Principal, str]],
    entities: list[int],
    values: list[float],
    times_ms: list[int],
) -> list[int]:
    """Ask a manager about one request after the other, and return the ms to throttle each."""
    throttled: list[int] = []
    for number in range(len(entities)):
        principal, client_id = clients[entities[number]]
        throttled.append(
            manager.maybe_record_and_get_throttle_time(principal, client_id, values[number], times_ms[number])
        )
    return throttled
