"""Series of whole clusters, and what is usual there."""

from __future__ import annotations

from quotascope.metrics import catalog

from .. import recorded
from ..levels import Levels
from ..promql import above, aggregate, call, operation, rate, select, series
from ..rule import Group, Record
from ..thresholds import THROTTLED

_DAY = "1d"
_RECENT = "30m"
"""Left out of what is usual, so that a spike is not compared with itself."""


def clusters(levels: Levels) -> Group:
    """Throttle time, throttled entities, delay queues and refusals of every cluster."""
    return Group(
        name="quotascope-clusters",
        rules=(
            Record(
                name=recorded.CLUSTER_THROTTLED_RATE,
                expr=aggregate(
                    "sum", levels.cluster, series(recorded.BROKER_THROTTLED_RATE)
                ),
                meaning="Throttle time of clients per second, on all brokers.",
            ),
            _throttled_entities(levels),
            Record(
                name=recorded.CLUSTER_DELAY_QUEUE,
                expr=aggregate(
                    "sum",
                    levels.of("quota_type"),
                    series(recorded.BROKER_DELAY_QUEUE),
                ),
                meaning="Connections that brokers have muted, by quota type.",
            ),
            _rejections(levels),
        ),
    )


def baselines(levels: Levels) -> Group:
    """What is usual: these need days of data and change slowly."""
    return Group(
        name="quotascope-baselines",
        interval="2m",
        rules=(
            Record(
                name=recorded.CLUSTER_THROTTLED_BASELINE,
                expr=_usual(levels, recorded.CLUSTER_THROTTLED_RATE),
                meaning="Usual throttle time per second: the highest of the last day's average and the peaks around this time yesterday and a week ago.",
            ),
            Record(
                name=recorded.CLUSTER_THROTTLED_ENTITIES_BASELINE,
                expr=_usual(levels, recorded.CLUSTER_THROTTLED_ENTITIES),
                meaning="Usual number of throttled entities, computed in the same way.",
            ),
            Record(
                name=recorded.CLUSTER_REJECTIONS_BASELINE,
                expr=_over("avg_over_time", recorded.CLUSTER_REJECTIONS, _DAY, _RECENT),
                meaning="Refusals per second by request, average of the day before.",
            ),
        ),
    )


def _throttled_entities(levels: Levels) -> Record:
    throttled = above(series(recorded.ENTITY_THROTTLE), THROTTLED.value)
    # one under two quotas is one
    entities = aggregate("group", levels.entity, throttled)
    known = aggregate("count", levels.cluster, entities)
    nobody = operation(
        "0", "*", aggregate("group", levels.cluster, series(catalog.BUILD_INFO.name))
    )
    return Record(
        name=recorded.CLUSTER_THROTTLED_ENTITIES,
        expr=operation(
            _highest(levels, clients=known, callback=_of_callbacks(levels)),
            "or",
            nobody,
        ),
        meaning=f"Entities throttled by {THROTTLED.value:g} s or more on average, 0 if there are none. For a custom callback: the highest count of a broker and quota type.",
    )


def _of_callbacks(levels: Levels) -> str:
    """How many are throttled on one broker: their labels are the callback's, so that they cannot be put together."""
    throttled = above(select(catalog.CALLBACK_THROTTLE_TIME_SECONDS), THROTTLED.value)
    once = aggregate("count", levels.of("instance", "broker", "quota_type"), throttled)
    return aggregate("max", levels.cluster, once)


def _rejections(levels: Levels) -> Record:
    labels = levels.of("request")
    once = aggregate(
        "max", levels.of("broker", "request"), rate(catalog.THROTTLING_ERRORS, "5m")
    )
    return Record(
        name=recorded.CLUSTER_REJECTIONS,
        expr=aggregate("sum", labels, once),
        meaning="Refusals (THROTTLING_QUOTA_EXCEEDED) per second, by request; KRaft counts each twice.",
    )


def _usual(levels: Levels, name: str) -> str:
    return _highest(
        levels,
        day=_over("avg_over_time", name, _DAY, _RECENT),
        yesterday=_over("max_over_time", name, "2h", "23h"),
        week=_over("max_over_time", name, "2h", "167h"),
    )


def _highest(levels: Levels, **expressions: str) -> str:
    """The highest of some, for each cluster; any of them may be missing."""
    told_apart = [
        call("label_replace", expression, '"of"', f'"{which}"', '""', '""')
        for which, expression in expressions.items()
    ]
    return aggregate("max", levels.cluster, "\nor\n".join(told_apart))


def _over(function: str, name: str, window: str, offset: str) -> str:
    return call(function, series(name, window=window, offset=offset))
