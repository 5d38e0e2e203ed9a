"""Bytes of teams in a month, from the counters of exporters in a Prometheus server."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Final

from quotascope.metrics import catalog

from ..prometheus.past import Check, NoSamples, Server, check_clusters
from ..prometheus.promql import HOUR_S, duration, ranges, targets, within
from .month import Month
from .usage import BYTES, ClusterUse, Key, TeamBytes

_DAY_S: Final = 86_400.0
"""Length of the range of a query: a thousand teams, scraped every 15 s, have 6 million samples a day."""
CAVEAT: Final = (
    "Counted by exporters, from the rates of brokers at each scrape: Kafka's rates are a few percent too high for "
    "clients whose requests are few or come in bursts. Request logs are exact."
)


def uses_of_counters(  # noqa: PLR0913 - the parts of a configuration
    server: Server, address: str, selector: str, month: Month, now_s: float, cluster: str, *, check: Check
) -> list[ClusterUse]:
    """
    Return the growth of the counters of teams in a month, for each value of the label `cluster`.

    If a cluster has several exporters, the one with the largest growth in an hour is used for that hour. Counters may
    start again at 0.

    Args:
        server: server.
        address: address of the server, without secrets.
        selector: matchers of the series, without braces.
        month: month.
        now_s: present time, a Unix time in seconds.
        cluster: name for the cluster whose series have no label `cluster`.
        check: function that raises if exporters with the same label belong to several clusters.

    Raises:
        NoSamples: no exporter counted anything in the month.
        PipelineError: the server cannot be asked.

    """
    begin_s, end_s = month.span_s
    until_s = max(begin_s, min(end_s, now_s // HOUR_S * HOUR_S))
    amounts: dict[str, dict[Key, float]] = defaultdict(lambda: defaultdict(float))
    seen_s: dict[str, float] = defaultdict(float)
    seen = f"{catalog.TEAM_SEEN_SECONDS.name}{{{selector}}}"
    if until_s > begin_s:
        check_clusters(server.ask(targets(seen, until_s - begin_s), until_s), check)
    for day_begin_s, day_end_s in ranges(begin_s, until_s, _DAY_S):
        day_s = day_end_s - day_begin_s
        for kind in BYTES:
            query = _growth(catalog.TEAM_BYTES[kind].name, selector, "cluster,team", day_s)
            for answer in server.ask(query, day_end_s):
                ((_, value),) = answer.samples
                amounts[answer.labels.get("cluster", "")][answer.labels.get("team", ""), kind] += value
        query = _growth(catalog.TEAM_SEEN_SECONDS.name, selector, "cluster", day_s)
        for answer in server.ask(query, day_end_s):
            ((_, value),) = answer.samples
            if math.isfinite(value):
                seen_s[answer.labels.get("cluster", "")] += min(value, day_s)
    if not amounts:
        raise NoSamples(
            f"{address}: no exporter has counted bytes of teams in {month.name}; it needs `teams: FILE` in its "
            "configuration"
        )
    return [
        ClusterUse(
            cluster=label or cluster,
            source=address,
            seen_s=seen_s[label],
            until_s=until_s,
            bytes={
                key: TeamBytes(amount=round(value) if math.isfinite(value) else None, approximate=True)
                for key, value in amounts[label].items()
            },
            caveats=(CAVEAT,),
        )
        for label in sorted(amounts)
    ]


def _growth(name: str, selector: str, by: str, seconds: float) -> str:
    """Return the query for the growth of counters: the sum over all hours of the largest growth on any exporter."""
    by_hour = f"max by ({by}) (increase({name}{{{selector}}}[{duration(HOUR_S)}]))"
    return f"sum_over_time(({by_hour})[{within(seconds)}:{duration(HOUR_S)}])"
