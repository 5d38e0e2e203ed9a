"""Bytes of teams in a month by the counters of exporters, as a Prometheus server has them."""

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
"""Length of the range of a query: a thousand teams scraped each 15 s are 6 million samples."""
CAVEAT: Final = (
    "Counted by exporters, from the rates of brokers at each scrape: Kafka's rates are a few percent too high for "
    "clients whose requests are few or come in bursts. Request logs are exact."
)


def uses_of_counters(  # noqa: PLR0913 - the parts of a configuration
    server: Server, address: str, selector: str, month: Month, now_s: float, cluster: str, *, check: Check
) -> list[ClusterUse]:
    """
    Add up what counters of teams grew by, for each value of the label `cluster`.

    If a cluster has several exporters, the one that counted most in an hour counts for that hour. Counters may begin
    again.

    Args:
        server: the server.
        address: its address, without secrets.
        selector: matchers of the series, without braces.
        month: the month.
        now_s: the present as a Unix time in seconds.
        cluster: name of a cluster whose series have no such label.
        check: function that raises for exporters that share the label, and are not of one cluster.

    Raises:
        NoSamples: no exporter counted anything in the month.
        PipelineError: the server cannot be asked.

    """
    begin_s, end_s = month.span_s
    until_s = max(begin_s, min(end_s, now_s // HOUR_S * HOUR_S))
    amounts: dict[str, dict[Key, float]] = defaultdict(lambda: defaultdict(float))
    seen_hours: dict[str, float] = defaultdict(float)
    seen = f"{catalog.TEAM_SEEN_SECONDS.name}{{{selector}}}"
    if until_s > begin_s:
        check_clusters(server.ask(targets(seen, until_s - begin_s), until_s), check)
    for part in ranges(begin_s, until_s, _DAY_S):
        for kind in BYTES:
            query = _growth(catalog.TEAM_BYTES[kind].name, selector, "cluster,team", part[1] - part[0])
            for answer in server.ask(query, part[1]):
                ((_, value),) = answer.samples
                amounts[answer.labels.get("cluster", "")][answer.labels.get("team", ""), kind] += value
        query = _growth(catalog.TEAM_SEEN_SECONDS.name, selector, "cluster", part[1] - part[0])
        for answer in server.ask(query, part[1]):
            ((_, value),) = answer.samples
            if math.isfinite(value):
                seen_hours[answer.labels.get("cluster", "")] += min(value, part[1] - part[0])
    if not amounts:
        raise NoSamples(
            f"{address}: no exporter has counted bytes of teams in {month.name}; it needs `teams: FILE` in its "
            "configuration"
        )
    return [
        ClusterUse(
            cluster=label or cluster,
            source=address,
            seen_s=seen_hours[label],
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
    """Return the query for the growth of counters: for each whole hour, the most that any replica saw."""
    of_hours = f"max by ({by}) (increase({name}{{{selector}}}[{duration(HOUR_S)}]))"
    return f"sum_over_time(({of_hours})[{within(seconds)}:{duration(HOUR_S)}])"
