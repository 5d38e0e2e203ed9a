"""Comparison of a shadow's prediction with the throttles since its limits are set, by the samples of a Prometheus."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from ..runs.verify import ByEntity, EntityKey, Figures, NotVerified, Verification, compared, times_of
from .past import Answer, Check, QueryRefused, QueryTooLarge, Server, check_clusters
from .promql import quoted, targets

_ACTED: Final = 'kafka_quota_throttle_time_seconds{user!="__overflow__"'


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

    Exporters of one cluster, and replicas of a server, count once.

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
    samples, acted = (
        _query(server, f"max by (cluster) (count_over_time({series}[{_span(begin, end)}]))", end)
        for series, begin, end in (
            (predicted_series, times.begin, times.since),
            (acted_series, times.since, times.until),
        )
    )
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
    """
    Return by entity of a cluster the number of samples above 0, and the sum of all samples.

    The number is as Prometheus's evaluation interval shows it, and at least one for a sum above 0.
    """
    span = _span(begin_ms, end_ms)

    def by_entity(expression: str) -> dict[EntityKey, float]:
        """Return the sums of a quantity of series over brokers and quota types."""
        # exporters of one cluster have the same series, each with its own labels of the target
        of_cluster = f"max by (user, client_id, cluster, broker, quota_type) ({expression})"
        return _query(server, f"sum by (user, client_id, cluster) ({of_cluster})", end_ms)

    sums = by_entity(f"sum_over_time({series}[{span}])")
    above = by_entity(f"count_over_time(({series} > 0)[{span}:])")
    return {key: Figures(max(int(above.get(key, 0)), int(value > 0)), value) for key, value in sums.items()}


def _span(begin_ms: int, end_ms: int) -> str:
    """Return a range without its begin, which Prometheus before 3.0 includes."""
    return f"{max(1, (end_ms - begin_ms - 1) // 1_000)}s"


def _query(server: Server, expression: str, time_ms: int) -> dict[EntityKey, float]:
    """Return the values of a Prometheus by entity of a cluster. Raises `NotVerified`."""
    values: dict[EntityKey, float] = {}
    for answer in _ask(server, expression, time_ms):
        labels = answer.labels
        values[labels.get("user", ""), labels.get("client_id", ""), labels.get("cluster", "")] = answer.samples[-1][1]
    return values


def _ask(server: Server, expression: str, time_ms: int) -> Sequence[Answer]:
    """Return the answer of a Prometheus. Raises `NotVerified`."""
    try:
        return server.ask(expression, time_ms / 1_000)
    except QueryTooLarge as error:
        raise NotVerified(f"{error}: take a shorter time with --from and --until, or compare by --folder") from error
    except QueryRefused as error:
        raise NotVerified(str(error)) from error
