"""Colors of values. Red begins where an alert does: at a threshold of ``quotascope.alerts``, or at what an alert has no number for."""

from __future__ import annotations

from typing import Any, Final

from quotascope.alerts.thresholds import (
    CLIENT_TIMEOUT,
    CONNECTION_THROTTLE,
    DELAY_QUEUE,
    EXEMPT_CAPACITY,
    LIMITS_AGE,
    MANY_ENTITIES,
    MUTATION_THROTTLED,
    NEAR_LIMIT,
    PREDICTION,
    REJECTIONS,
    REQUEST_CAPACITY,
    SNAPSHOT_AGE,
    SPARK_STALLED,
    SPARK_THROTTLED,
    SPIKE_ENTITIES,
    THROTTLED,
)

Steps = list[dict[str, Any]]
"""Grafana's JSON of a color for each range of values, from the lowest up; the lowest has no value."""

GREEN, RED, BLUE, NO_COLOR = "green", "red", "blue", "transparent"
ABOVE_ZERO = 1e-9


def steps(*, lowest: str = GREEN, **colors: float) -> Steps:
    """
    Colors from the lowest value up.

    >>> [step["value"] for step in steps(orange=0.5, red=1)]
    [None, 0.5, 1]
    """
    rising = sorted(colors.items(), key=lambda item: item[1])
    return [
        {"color": lowest, "value": None},
        *({"color": color.replace("_", "-"), "value": at} for color, at in rising),
    ]


NO_STEPS: Final = steps()
"""Grafana needs one, and it says nothing."""
NEUTRAL = steps(lowest=BLUE)
NEAR = NEAR_LIMIT.value
USED = steps(yellow=PREDICTION.value, red=NEAR, dark_red=1.0)
"""Dark from the limit on."""
PREDICTED = steps(yellow=PREDICTION.value, orange=NEAR, red=1.0)
"""The alert is about a trend that reaches the limit."""
DELAY = steps(orange=THROTTLED.value, red=CLIENT_TIMEOUT.value)
DELAY_IF_ANY = steps(
    lowest=NO_COLOR,
    yellow=ABOVE_ZERO,
    orange=THROTTLED.value,
    red=CLIENT_TIMEOUT.value,
)
"""Of cells: one without a number has the lowest color."""
MUTATION_DELAY = steps(orange=THROTTLED.value, red=MUTATION_THROTTLED.value)
ENTITIES = steps(yellow=1, orange=SPIKE_ENTITIES.value, red=MANY_ENTITIES.value)
MUTED = steps(yellow=1)
"""Of a cluster; the alert is about brokers."""
MUTED_BY_BROKER = steps(yellow=1, red=DELAY_QUEUE.value)
REFUSED = steps(yellow=0.001, red=REJECTIONS.value)
BURST = steps(yellow=PREDICTION.value, red=1.0)
"""The alert is about tokens below 0."""
CAPACITY = steps(yellow=EXEMPT_CAPACITY.value, red=REQUEST_CAPACITY.value)
LISTENER_DELAY = steps(red=CONNECTION_THROTTLE.value)
OLD_LIMITS = steps(red=LIMITS_AGE.value)
OLD_NUMBERS = steps(red=SNAPSHOT_AGE.value)
JOB_WAITS = steps(red=SPARK_THROTTLED.value)
JOB_WAITS_IF_ANY = steps(lowest=NO_COLOR, yellow=ABOVE_ZERO, red=SPARK_THROTTLED.value)
QUERY_STALLED = steps(red=SPARK_STALLED.value)
ANY = steps(orange=1)
DOWN = steps(red=1)
UP = steps(lowest=RED, green=1)
