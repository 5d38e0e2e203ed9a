"""Series of quota entities, over all brokers."""

from __future__ import annotations

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import recorded
from ..levels import Levels
from ..promql import aggregate, call, compare, operation, select, series
from ..rule import Group, Record
from ..throttles import by_deciding_quota
from ..trend import WINDOW, in_three_hours


def entities(levels: Levels) -> Group:
    """Throttle, utilisation, headroom and amounts of every entity."""
    return Group(
        name="quotascope-entities",
        rules=(
            _throttle(levels),
            _utilization(levels),
            _headroom(),
            _total(
                levels,
                recorded.ENTITY_PRODUCE,
                catalog.PRODUCE_BYTES_PER_SECOND,
                "Bytes per second produced, on all brokers.",
            ),
            _total(
                levels,
                recorded.ENTITY_FETCH,
                catalog.FETCH_BYTES_PER_SECOND,
                "Bytes per second fetched, on all brokers.",
            ),
            _total(
                levels,
                recorded.ENTITY_REQUEST,
                catalog.REQUEST_THREADS,
                "Request time used, in threads, on all brokers.",
            ),
            _user_bytes(levels),
            _cluster_bytes(levels),
        ),
    )


def trends() -> Group:
    """How full the limits have been and will be: looks back far, and changes slowly."""
    recent = series(recorded.ENTITY_UTILIZATION, window="30m")
    history = series(recorded.ENTITY_UTILIZATION, window=WINDOW)
    return Group(
        name="quotascope-trends",
        interval="2m",
        rules=(
            Record(
                name=recorded.ENTITY_UTILIZATION_RECENT,
                expr=call("avg_over_time", recent),
                meaning="Average utilization of 30 minutes on the busiest broker; also of entities that left in that time.",
            ),
            Record(
                name=recorded.ENTITY_UTILIZATION_PREDICTED,
                expr=in_three_hours(history),
                meaning="Utilization on the busiest broker in three hours by the trend of the last six; also of entities that left in that time.",
            ),
        ),
    )


def _throttle(levels: Levels) -> Record:
    return Record(
        name=recorded.ENTITY_THROTTLE,
        expr=aggregate("max", levels.typed, by_deciding_quota(levels)),
        meaning="Throttle time above 0 on the worst broker; `quota_type` is the quota that causes it.",
    )


def _utilization(levels: Levels) -> Record:
    return Record(
        name=recorded.ENTITY_UTILIZATION,
        expr=aggregate("max", levels.typed, select(catalog.UTILIZATION)),
        meaning="Utilization on the busiest broker.",
    )


def _headroom() -> Record:
    return Record(
        name=recorded.ENTITY_HEADROOM,
        expr=operation("1", "-", series(recorded.ENTITY_UTILIZATION)),
        meaning="Unused share of the limit on the busiest broker; negative above the limit.",
    )


def _total(levels: Levels, name: str, family: Family, meaning: str) -> Record:
    once = aggregate("max", levels.of("broker", "user", "client_id"), select(family))
    return Record(
        name=name, expr=aggregate("sum", levels.entity, once), meaning=meaning
    )


def _user_bytes(levels: Levels) -> Record:
    labels = levels.of("user")
    produced = aggregate("sum", labels, series(recorded.ENTITY_PRODUCE))
    fetched = aggregate(
        "sum", labels, compare(series(recorded.ENTITY_FETCH), ">=", 0)
    )  # an unrecorded fetch makes a rate negative
    both = operation(
        call("label_replace", produced, '"side"', '"produce"', '""', '""'),
        "or",
        call("label_replace", fetched, '"side"', '"fetch"', '""', '""'),
    )
    return Record(
        name=recorded.USER_BYTES,
        expr=aggregate("sum", labels, both),
        meaning="Bytes per second produced and fetched by a user with all client ids; an empty user: entities without a user.",
    )


def _cluster_bytes(levels: Levels) -> Record:
    return Record(
        name=recorded.CLUSTER_BYTES,
        expr=aggregate("sum", levels.cluster, series(recorded.USER_BYTES)),
        meaning="Bytes per second produced and fetched by all measured clients.",
    )
