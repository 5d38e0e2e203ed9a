"""Colors of values: red from the threshold of an alert; for throttles, red above 0 and darker from the threshold."""

from __future__ import annotations

import re
from typing import Any, Final

from quotascope.alerts import Site, Threshold, thresholds
from quotascope.alerts.render import threshold_texts
from quotascope.alerts.thresholds import (
    BROKER_SOLD,
    CLIENT_TIMEOUT,
    CONNECTION_THROTTLE,
    DELAY_QUEUE,
    EXEMPT_CAPACITY,
    HANDLERS_IDLE,
    LIMITS_AGE,
    MANY_ENTITIES,
    NEAR_LIMIT,
    PREDICTION,
    REFUSALS,
    REQUEST_CAPACITY,
    SNAPSHOT_AGE,
    SPARK_STALLED,
    SPARK_THROTTLED,
    SPIKE_ENTITIES,
    TEAM_BUDGET,
    THROTTLED_SHARE,
)

Steps = list[dict[str, Any]]
"""JSON of colors by range of values, from the lowest up; the lowest has no value."""

_PLACE: Final = re.compile(r"\$\{([A-Z_]+)\}")
GREEN, RED, BLUE, NO_COLOR = "green", "red", "blue", "transparent"
ABOVE_ZERO = 1e-9


def steps(*, lowest: str = GREEN, **colors: float | Threshold) -> Steps:
    """
    Return colors from the lowest value up; a threshold stands for its value at a site, see `at_thresholds`.

    >>> [step["value"] for step in steps(orange=0.5, red=1)]
    [None, 0.5, 1]
    """
    return [
        {"color": lowest, "value": None},
        *({"color": color.replace("_", "-"), "value": value} for color, value in colors.items()),
    ]


def at_thresholds(site: Site, document: Any) -> Any:  # noqa: ANN401  # JSON
    """
    Return a dashboard with the site's values in place of thresholds and of ``${NAME}`` in texts, and ordered steps.

    >>> at_thresholds(Site(thresholds={PREDICTION: 0.95}), {"steps": USED})["steps"][1:]
    [{'color': 'red', 'value': 0.9}, {'color': 'yellow', 'value': 0.95}, {'color': 'semi-dark-red', 'value': 1.0}]
    """
    texts = threshold_texts(site)

    def value(place: re.Match[str]) -> str:
        return texts.get(place[1], place[0])  # Grafana has placeholders of its own

    def resolved(document: Any) -> Any:  # noqa: ANN401  # JSON
        if isinstance(document, dict):
            return {key: resolved(item) for key, item in document.items()}
        if isinstance(document, list):
            items = [resolved(item) for item in document]
            if any(_is_threshold(item) for item in document):
                items.sort(key=lambda step: (step["value"] is not None, step["value"]))
            return items
        if isinstance(document, str):
            return _PLACE.sub(value, document)
        return site.value(document) if isinstance(document, Threshold) else document

    return resolved(document)


def by_names(document: Any) -> Any:  # noqa: ANN401  # JSON
    """
    Return a dashboard with names in place of thresholds, for a mixin to fill in.

    >>> by_names({"value": PREDICTION})
    {'value': {'threshold': 'PREDICTION'}}
    """
    if isinstance(document, dict):
        return {key: by_names(item) for key, item in document.items()}
    if isinstance(document, list):
        return [by_names(item) for item in document]
    if isinstance(document, Threshold):
        return {"threshold": next(name for name, threshold in thresholds() if threshold is document)}
    return document


def _is_threshold(step: object) -> bool:
    return isinstance(step, dict) and isinstance(step.get("value"), Threshold)


NO_STEPS: Final = steps()
"""A single color, as Grafana requires one."""
NEUTRAL = steps(lowest=BLUE)
USED = steps(yellow=PREDICTION, red=NEAR_LIMIT, semi_dark_red=1.0)
"""Colors of utilization, darker from the limit on; dark-red cannot be read on Grafana's dark tables."""
PREDICTED = steps(yellow=PREDICTION, orange=NEAR_LIMIT, red=1.0)
"""Colors of predicted utilization; the alert is about a trend that reaches the limit."""
DELAY = steps(red=ABOVE_ZERO, semi_dark_red=CLIENT_TIMEOUT)
"""Colors of throttle times: red for any throttle, darker where clients give up."""
DELAY_IF_ANY = steps(lowest=NO_COLOR, red=ABOVE_ZERO, semi_dark_red=CLIENT_TIMEOUT)
"""Colors of throttle times in cells: a cell without a number has the lowest color."""
THROTTLED_FOR = steps(lowest=NO_COLOR, red=ABOVE_ZERO, semi_dark_red=THROTTLED_SHARE)
ENTITIES = steps(yellow=1, orange=SPIKE_ENTITIES, red=MANY_ENTITIES)
MUTED = steps(yellow=1)
"""Colors of the muted connections of a cluster; the alert is about brokers."""
MUTED_BY_BROKER = steps(yellow=1, red=DELAY_QUEUE)
REFUSED = steps(yellow=0.001, red=REFUSALS)
BURST = steps(yellow=PREDICTION, red=1.0)
"""Colors of a used burst; the alert is about tokens below 0."""
CAPACITY = steps(yellow=EXEMPT_CAPACITY, red=REQUEST_CAPACITY)
IDLE = steps(lowest=RED, green=HANDLERS_IDLE)
LISTENER_DELAY = steps(red=CONNECTION_THROTTLE)
OLD_LIMITS = steps(red=LIMITS_AGE)
OLD_NUMBERS = steps(red=SNAPSHOT_AGE)
JOB_WAITS = steps(red=ABOVE_ZERO, semi_dark_red=SPARK_THROTTLED)
JOB_WAITS_IF_ANY = steps(lowest=NO_COLOR, red=ABOVE_ZERO, semi_dark_red=SPARK_THROTTLED)
QUERY_STALLED = steps(red=SPARK_STALLED)
BUDGET = steps(yellow=NEAR_LIMIT, red=TEAM_BUDGET)
SOLD = steps(yellow=1.0, red=BROKER_SOLD)
ANY = steps(orange=1)
DOWN = steps(red=1)
UP = steps(lowest=RED, green=1)
