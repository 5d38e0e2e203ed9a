"""Comparison of a shadow's prediction with the throttles since its limits are set, by the samples of a Prometheus."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ..runs.verify import ByEntity, EntityKey, Figures, NotVerified, Verification, compared, times_of
from .past import Answer, Check, QueryRefused, QueryTooLarge, Server, check_clusters
from .promql import quoted, ranges, targets

_ACTED: Final = 'kafka_quota_throttle_time_seconds{user!="__overflow__"'
_STEP_S: Final = 15
"""Step in seconds at which values are compared: a usual scrape interval."""
_RANGE_MS: Final = 6 * 3_600_000
"""Longest range of a query in ms: 1,440 steps, at which a server has all series in memory."""


def verify_prometheus(  # noqa: PLR0913 - the parts of a configuration
    server: Server,
    shadow: str,
    since_ms: int,
    until_ms: int | None,
    begin_ms: int | None,
    *,
    selector: str,
    check: Check,
) -> Verification:
    """
    Compare throttle times of a shadow before its limits were set with those of the brokers after that, in a Prometheus.

    Exporters of one cluster, and replicas of a server, count once. Values are compared at steps of 15 s, however often
    the exporters were scraped.

    Args:
        server: the server.
        shadow: name of the candidate.
        since_ms: time when its limits were set, in ms since 1970.
        until_ms: end of the comparison; the present for None.
        begin_ms: begin of the prediction; as long before as until after for None.
        selector: matchers of the series, without braces.
        check: function that raises for exporters that share the label `cluster`, and are not of one cluster.

    Raises:
        NotVerified: there is no prediction, or Prometheus does not answer.

    """
    times = times_of(since_ms, until_ms or time.time_ns() // 1_000_000, begin_ms)
    end = f",{selector}}}" if selector else "}"
    acted_series = _ACTED + end
    predicted_series = f"kafka_quota_shadow_throttle_time_seconds{{shadow={quoted(shadow)}{end}"
    # for a client held back under a higher limit, the exporter shows a lower bound of the utilization and no throttle
    # time
    limited = f"kafka_quota_shadow_utilization_ratio{{shadow={quoted(shadow)}{end}"
    exporters = [
        exporter
        for series, until in ((predicted_series, times.since), (limited, times.since), (acted_series, times.until))
        for exporter in _ask(server, targets(series, (until - times.begin) / 1_000), until)
    ]
    check_clusters(exporters, check)
    predicted = dict(_sampled(server, predicted_series, times.begin, times.since))
    bounds = _sampled(server, limited, times.begin, times.since).keys() - predicted.keys()
    predicted |= dict.fromkeys(bounds, Figures())
    if not predicted:
        raise NotVerified(f"Prometheus has no prediction of shadow {shadow[:60]!r} in that time")
    happened = _sampled(server, acted_series, times.since, times.until)
    samples = _present(server, predicted_series, times.begin, times.since)
    acted = _present(server, acted_series, times.since, times.until)
    silent = sorted(key[2] for key, count in samples.items() if count and not acted.get(key))
    if silent:
        names = ", ".join(repr(cluster[:60]) for cluster in silent)
        raise NotVerified(
            f"Prometheus has no throttle times of cluster {names} since the limits were set: was the exporter read, "
            "and does its agent report throttle times?"
        )
    scales = {key[2]: acted.get(key, 0.0) / count for key, count in samples.items()}
    acted_before = _sampled(server, acted_series, times.begin, times.since)
    held_back = bounds | {key for key, figures in acted_before.items() if figures.throttled}
    return compared(shadow, times, predicted, happened, scales, held_back)


def _sampled(server: Server, series: str, begin_ms: int, end_ms: int) -> ByEntity:
    """Return by entity of a cluster the number of steps with a value above 0, and the sum over all steps."""
    # exporters of a cluster, and one whose target gets other labels, have the same series but for labels of the target
    of_cluster = f"max by (user, client_id, cluster, broker, quota_type) ({_after(series, begin_ms)})"
    sums = _summed(server, "sum", of_cluster, begin_ms, end_ms)
    above = _summed(server, "count", f"{of_cluster} > 0", begin_ms, end_ms)
    return {key: Figures(int(above.get(key, 0)), value) for key, value in sums.items()}


def _present(server: Server, series: str, begin_ms: int, end_ms: int) -> dict[EntityKey, float]:
    """Return by cluster the number of steps at which it has any of the series."""
    return _summed(server, "count", f"group by (cluster) ({_after(series, begin_ms)})", begin_ms, end_ms)


def _after(series: str, time_ms: int) -> str:
    """Return the samples of series after a time: the first steps would show the last sample before it."""
    return f"{series} and timestamp({series}) > {time_ms / 1_000!r}"


def _summed(server: Server, function: str, expression: str, begin_ms: int, end_ms: int) -> dict[EntityKey, float]:
    """
    Return the sum or count of an expression's values at all steps of a period, by entity of a cluster.

    Raises `NotVerified`.
    """
    values: dict[EntityKey, float] = defaultdict(float)
    for range_begin_ms, range_end_ms in ranges(begin_ms, end_ms, _RANGE_MS):
        # the begin is no part of the range, and Prometheus before 3.0 would include it
        steps = f"({expression})[{max(1, range_end_ms - range_begin_ms - 1):.0f}ms:{_STEP_S}s]"
        query = f"sum by (user, client_id, cluster) ({function}_over_time({steps}))"
        for answer in _ask(server, query, range_end_ms):
            labels = answer.labels
            key = labels.get("user", ""), labels.get("client_id", ""), labels.get("cluster", "")
            values[key] += answer.samples[-1][1]
    return values


def _ask(server: Server, expression: str, time_ms: float) -> Sequence[Answer]:
    """Return the answer of a Prometheus. Raises `NotVerified`."""
    try:
        return server.ask(expression, time_ms / 1_000)
    except QueryTooLarge as error:
        raise NotVerified(f"{error}: take a shorter time with --from and --until, or compare by --folder") from error
    except QueryRefused as error:
        raise NotVerified(str(error)) from error
