"""Bytes of teams in a month: from a usage history, from the rates in a Prometheus, or from an exporter's counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.words import counted, shown
from quotascope.quotas.team_finder import TeamFinder

from ..history import History
from ..losses import may_lack
from ..prometheus import usage as of_samples
from ..prometheus.evidence import Sight
from ..prometheus.past import Past
from ..prometheus.promql import HOUR_S
from ..rates import QUARTER_MS, span_ms, sums_of
from ..runs import usage as of_history
from ..runs.usage import UNSIZED
from ..table import Progress
from .month import Month

BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
"""Quota types that have a price."""
Key: TypeAlias = tuple[str, QuotaType]
"""Label of a team (its name, `UNOWNED` or `UNDECIDED`), and the quota type that counts its bytes."""
_WITHOUT_LOGS: Final = "nodes have no log here"
_MISSING: Final = "requests are missing from the logs, or may be"
_SHORT: Final = 1.0
"""
Number of seconds that may be missing from a month that counts as seen completely, because of rounding.

It is not a part of the period, as in other commands: a thousandth of a month is three quarters of an hour.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBytes:
    """Bytes of a team in the part of a month that was seen."""

    amount: int | None
    """Bytes; None if there were some, and their number is unknown."""
    at_least: bool = False
    """True if the amount is a lower bound, as requests or samples are missing, or may be."""
    approximate: bool = False
    """True if the amount was estimated from samples of a load that was not steady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUse:
    """Bytes of all teams of a cluster in a month."""

    cluster: str
    """Name of the cluster, which may be untrusted."""
    source: str
    """Folder or address that the figures are from."""
    seen_s: float
    """Seconds of the month for which the node with the fewest samples or requests was seen."""
    until_s: float
    """End of the part of the month that could be seen, a Unix time in seconds."""
    lacks_nodes: bool = False
    """True if some nodes of the cluster were not seen at all, so that every figure is a lower bound."""
    bytes: Mapping[Key, TeamBytes] = field(default_factory=dict)
    caveats: Sequence[str] = ()
    """Gaps in the figures, a sentence or two each."""
    bounds: Sequence[str] = ()
    """Reasons why figures are lower bounds, for `legend_of_bounds`, other than hours that were not seen."""

    def lacks(self, month: Month) -> bool:
        """Return whether any node was not seen for a part of the month so far."""
        return self.lacks_nodes or self.lacks_hours(month)

    def lacks_hours(self, month: Month) -> bool:
        """Return whether any of the nodes that were seen was not seen for a part of the month so far."""
        return self.seen_s + _SHORT < self.until_s - month.span_s[0]


def use_of_history(folder: str, month: Month, teams: TeamFinder, cluster: str, now_s: float) -> ClusterUse:
    """
    Return the bytes of teams in a month from a usage history.

    A broker counts as seen in every quarter of an hour in which it logged a request.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        month: month.
        teams: finder of the team of a client.
        cluster: name of the cluster.
        now_s: present time, a Unix time in seconds; the month is seen up to now at most.

    Raises:
        PipelineError: the folder has no history, it is empty, or a table cannot be read.

    """
    begin_s, end_s = month.span_s
    until_s = max(begin_s, min(end_s, now_s))
    span = round(1_000 * begin_s), round(1_000 * end_s)
    history = History.open(folder)
    seen = _seen_s(history, span)
    if not seen:
        caveat = f"{shown(folder, 200)} has no request of {month.name}: nothing is known of this cluster."
        return ClusterUse(cluster=cluster, source=folder, seen_s=0.0, until_s=until_s, caveats=(caveat,))
    usage = of_history.by_team(of_history.find_usage(folder, span_s=(begin_s, end_s)), teams)
    amounts: dict[Key, TeamBytes] = {
        (client.team or "", client.kind): TeamBytes(
            amount=client.amount if client.requests or not client.unsized else None,
            at_least=bool(client.unsized) or may_lack(client.missing_share),
        )
        for client in usage.clients
        if client.kind in BYTES
    }
    caveats = list(usage.losses.notes)
    lacks_nodes = usage.losses.nodes > len(seen)
    if lacks_nodes:
        caveats.append(
            f"Of {counted(usage.losses.nodes, 'node')} of the cluster, the logs of {len(seen)} are here: what the "
            "others received and sent is in no figure."
        )
    priced = [client for client in usage.clients if client.kind in BYTES]
    bounds = {
        _WITHOUT_LOGS: lacks_nodes,
        UNSIZED: any(client.unsized for client in priced),
        _MISSING: any(may_lack(client.missing_share) for client in priced),
    }
    return ClusterUse(
        cluster=cluster,
        source=folder,
        seen_s=min(seen.values()),
        until_s=until_s,
        lacks_nodes=lacks_nodes,
        bytes=amounts,
        caveats=caveats,
        bounds=[reason for reason, is_there in bounds.items() if is_there],
    )


def _seen_s(history: History, span: tuple[int, int]) -> dict[str, float]:
    """Return the seconds of a span (ms since 1970) in quarters of an hour with a logged request, by broker."""
    begin, end = span
    covered = span_ms(history, history.seconds)
    begin, end = max(begin, covered[0]), min(end, covered[1])
    quarters: dict[str, NDArray[np.int64]] = {}
    if begin < end:
        for broker, numbers in _quarters(history, (begin, end)):
            quarters_before = quarters.get(broker)
            quarters[broker] = numbers if quarters_before is None else np.union1d(quarters_before, numbers)
    lengths = {}
    for broker, numbers in quarters.items():
        firsts = np.maximum(numbers * QUARTER_MS, begin)
        lasts = np.minimum((numbers + 1) * QUARTER_MS, end)
        lengths[broker] = float((lasts - firsts).sum()) / 1_000
    return lengths


def _quarters(history: History, span: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield a broker, and numbers of quarters of an hour in which it logged requests; both may be repeated."""
    for batch in sums_of(history, span, ("start", "broker")):
        brokers = batch.column("broker").dictionary_encode()
        places = brokers.indices.to_numpy(zero_copy_only=False)
        numbers = batch.column("start").to_numpy(zero_copy_only=False) // QUARTER_MS
        for place, broker in enumerate(brokers.dictionary.to_pylist()):
            yield str(broker), np.unique(numbers[places == place])


def use_of_past(
    past: Past, month: Month, teams: TeamFinder, cluster: str, now_s: float, progress: Sequence[Progress | None] = ()
) -> ClusterUse:
    """
    Return the bytes of teams in a month from the rates in a Prometheus server, or in a table of samples.

    The part of the month that could be seen ends with the last full hour, even if the samples end earlier.

    Args:
        past: samples of the cluster within the month, up to the last full hour.
        month: month.
        teams: finder of the team of an entity.
        cluster: name of the cluster.
        now_s: present time, a Unix time in seconds.
        progress: two functions that are called with the number of queries that are done, and of all: for rates, and for
            throttle times.

    Raises:
        NoSamples: no client was measured in the month.

    """
    begin_s, end_s = month.span_s
    answer = of_samples.find_usage(past, progress=progress)
    amounts: dict[Key, TeamBytes] = {
        (usage.team or "", usage.kind): TeamBytes(
            amount=None if usage.amount is None else round(usage.amount),
            at_least=usage.is_lower_bound,
            approximate=usage.sight is not Sight.WHOLE,
        )
        for usage in of_samples.by_team(answer, teams).usages
        if usage.kind in BYTES
    }
    return ClusterUse(
        cluster=cluster,
        source=past.address,
        seen_s=min((min(past.seconds, node.seen_s) for node in past.nodes.values()), default=0.0),
        until_s=max(begin_s, min(end_s, now_s // HOUR_S * HOUR_S)),
        bytes=amounts,
        caveats=[of_samples.covered(answer), *of_samples.marks(answer)],
        bounds=[*of_samples.reasons_of_bounds(answer)],
    )
