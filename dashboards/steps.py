"""Colors of values. Red begins where an alert does: at one of its thresholds, or at what an alert has no number for."""

from __future__ import annotations

from typing import Any, Final

from quotascope.alerts import Site, Threshold
from quotascope.alerts.thresholds import (
    CLIENT_TIMEOUT,
    CONNECTION_THROTTLE,
    DELAY_QUEUE,
    EXEMPT_CAPACITY,
    HANDLERS_IDLE,
    LIMITS_AGE,
    MANY_ENTITIES,
    MUTATION_THROTTLED,
    NEAR_LIMIT,
    PREDICTION,
    REFUSALS,
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


def steps(*, lowest: str = GREEN, **colors: float | Threshold) -> Steps:
    """
    Colors from the lowest value up; a threshold stands for its value at a site, see `at_thresholds`.

    >>> [step["value"] for step in steps(orange=0.5, red=1)]
    [None, 0.5, 1]
    """
    return [
        {"color": lowest, "value": None},
        *({"color": color.replace("_", "-"), "value": at} for color, at in colors.items()),
    ]


def at_thresholds(site: Site, document: Any) -> Any:  # noqa: ANN401  # JSON
    """
    A dashboard with the site's values in the place of thresholds, and the steps in order.

    >>> at_thresholds(Site(thresholds={THROTTLED: 40.0}), {"steps": DELAY})["steps"][1:]
    [{'color': 'red', 'value': 30.0}, {'color': 'orange', 'value': 40.0}]
    """
    if isinstance(document, dict):
        return {key: at_thresholds(site, each) for key, each in document.items()}
    if isinstance(document, list):
        made = [at_thresholds(site, each) for each in document]
        if any(_is_threshold(each) for each in document):
            made.sort(key=lambda step: (step["value"] is not None, step["value"]))
        return made
    return site.value(document) if isinstance(document, Threshold) else document


def _is_threshold(step: object) -> bool:
    return isinstance(step, dict) and isinstance(step.get("value"), Threshold)


NO_STEPS: Final = steps()
"""Grafana needs one, and it says nothing."""
NEUTRAL = steps(lowest=BLUE)
USED = steps(yellow=PREDICTION, red=NEAR_LIMIT, semi_dark_red=1.0)
"""Darker from the limit on; dark-red cannot be read on Grafana's dark tables."""
PREDICTED = steps(yellow=PREDICTION, orange=NEAR_LIMIT, red=1.0)
"""The alert is about a trend that reaches the limit."""
DELAY = steps(orange=THROTTLED, red=CLIENT_TIMEOUT)
DELAY_IF_ANY = steps(lowest=NO_COLOR, yellow=ABOVE_ZERO, orange=THROTTLED, red=CLIENT_TIMEOUT)
"""Of cells: one without a number has the lowest color."""
MUTATION_DELAY = steps(orange=THROTTLED, red=MUTATION_THROTTLED)
ENTITIES = steps(yellow=1, orange=SPIKE_ENTITIES, red=MANY_ENTITIES)
MUTED = steps(yellow=1)
"""Of a cluster; the alert is about brokers."""
MUTED_BY_BROKER = steps(yellow=1, red=DELAY_QUEUE)
REFUSED = steps(yellow=0.001, red=REFUSALS)
BURST = steps(yellow=PREDICTION, red=1.0)
"""The alert is about tokens below 0."""
CAPACITY = steps(yellow=EXEMPT_CAPACITY, red=REQUEST_CAPACITY)
IDLE = steps(lowest=RED, green=HANDLERS_IDLE)
LISTENER_DELAY = steps(red=CONNECTION_THROTTLE)
OLD_LIMITS = steps(red=LIMITS_AGE)
OLD_NUMBERS = steps(red=SNAPSHOT_AGE)
JOB_WAITS = steps(red=SPARK_THROTTLED)
JOB_WAITS_IF_ANY = steps(lowest=NO_COLOR, yellow=ABOVE_ZERO, red=SPARK_THROTTLED)
QUERY_STALLED = steps(red=SPARK_STALLED)
ANY = steps(orange=1)
DOWN = steps(red=1)
UP = steps(lowest=RED, green=1)
