"""Throttle episodes of the past, from the samples of throttle times that a Prometheus server has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.metrics.kafka.windows import EPISODE_PAUSE_SECONDS
from quotascope.pages.words import percent
from quotascope.quotas import QuotaSet

from ..table import Progress
from . import promql
from .advice import Present
from .evidence import Entity
from .past import Past

_SCRAPES: Final = 2.5
"""Number of scrape intervals without a throttle that do not end an episode, because a scrape may fail."""
HOW_SEEN: Final = (
    "Episodes are seen by scrapes: brokers report a throttle for up to 60 s after it, so an episode "
    "began up to a scrape interval before, and ended up to 60 s before its times here. The longest throttle is the "
    "highest average of a window."
)


def find_episodes(
    past: Past,
    client: tuple[str | None, str | None] = (None, None),
    *,
    gaps: Sequence[tuple[str, float, float]] = (),
    configured: QuotaSet | None = None,
    present_limits: Mapping[Entity, Present] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """
    Return the throttle episodes of a period, as `pipeline.runs.episodes.find_episodes` returns those of a history.

    Args:
        past: samples.
        client: user and client id; None for any.
        gaps: node, begin and end of times without samples.
        configured: quotas of today, if they are known; no sample has the quotas of the past.
        present_limits: limits of today as an exporter reports them.
        progress: called with the number of queries that are done, and of all.

    """
    tables = None if configured is None else configured.tables()
    episodes: list[dict[str, Any]] = []
    measured_together = 0
    for (entity, node), samples in _throttle_samples(past, progress).items():
        kind, *names = entity
        rows = [
            {
                "user": names[0] or "",
                "client_id": names[1] or "",
                "broker": node,
                "quota_type": kind.label,
                "began_at": began,
                "ended_at": ended,
                "ongoing": False,
                "throttled_requests": None,
                "throttle_seconds": None,
                "longest_throttle_seconds": longest,
                "rules": _rules(entity, tables, present_limits or {}),
            }
            for began, ended, longest in _joined(samples, past.interval_of(node))
        ]
        if all(wanted is None or wanted == (name or "") for wanted, name in zip(client, names, strict=True)):
            episodes += rows
        elif _may_include(client, names):
            measured_together += len(rows)
    return {
        "begin": past.begin,
        "end": past.end,
        "measured_together": measured_together,
        "not_covered": [{"broker": node, "begin": begin, "end": end} for node, begin, end in gaps],
        "losses": {
            "notes": [*_caveats(past), *past.caveats],
            "brokers": [
                {"broker": node, "missing_share": 1 - EPISODE_PAUSE_SECONDS / of_node.longest_s}
                for node, of_node in past.nodes.items()
                if of_node.longest_s > EPISODE_PAUSE_SECONDS
            ],
        },
        "prometheus": past.address,
        "episodes": sorted(episodes, key=lambda row: (row["began_at"], row["broker"], row["user"], row["client_id"])),
    }


def _throttle_samples(past: Past, progress: Progress | None) -> dict[tuple[Entity, str], list[tuple[float, float]]]:
    """
    Return the samples of throttle times above 0 by entity and node: Unix time and throttle time, in seconds, in order.

    If several servers, or exporters, scraped a node, the samples of the one with most are returned.
    """
    by_replica: dict[tuple[Entity, str], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    groups = past.groups(throttles=True)
    for _, target, answer in past.ask(groups, {"throttles": promql.throttles}, progress=progress):
        entity = target.kind, target.user, target.client_id
        by_replica[entity, target.node][target.replica] += [(at, value * target.factor) for at, value in answer.samples]
    samples: dict[tuple[Entity, str], list[tuple[float, float]]] = {}
    for key, replicas in by_replica.items():
        most = max(replicas.values(), key=len)
        samples[key] = sorted(most)
    return samples


def _may_include(client: tuple[str | None, str | None], names: Sequence[str | None]) -> bool:
    """Return whether an entity is measured without the only name that `client` asks for, and so may include it."""
    user, client_id = client
    if (user is None) == (client_id is None):
        return False
    asked_name = names[0] if client_id is None else names[1]
    return not asked_name and any(names)


def _caveats(past: Past) -> Iterator[str]:
    """Yield how episodes are seen, and the reason why some are missing, if any."""
    yield HOW_SEEN
    if not past.groups(throttles=True):
        yield "The server has no series of throttle times: agents leave them out, or no client was measured."
    elif past.interval_s > EPISODE_PAUSE_SECONDS:
        missed = 1 - EPISODE_PAUSE_SECONDS / past.interval_s
        yield f"Scrapes every {past.interval_s:.0f} s miss {percent(missed)} of the time: short episodes are missing."


def _joined(samples: Iterable[tuple[float, float]], interval_s: float) -> Iterator[tuple[float, float, float]]:
    """Yield begin, end and longest throttle time of each episode, from the samples of an entity in order of time."""
    pause_s = max(EPISODE_PAUSE_SECONDS, _SCRAPES * interval_s)
    episode: tuple[float, float, float] | None = None
    for at, throttle_s in samples:
        if episode is None:
            episode = at, at, throttle_s
            continue
        began, ended, longest = episode
        if at - ended > pause_s:
            yield episode
            episode = at, at, throttle_s
        else:
            episode = began, at, max(longest, throttle_s)
    if episode is not None:
        yield episode


def _rules(
    entity: Entity, tables: Mapping[QuotaType, RuleTable] | None, present_limits: Mapping[Entity, Present]
) -> list[str] | None:
    """
    Return the rules of today that limit an entity; None if they are unknown.

    For the request quota, rules of controller mutations are included: under KRaft, brokers report throttles of
    mutations as throttles of the request quota.
    """
    kind, user, client_id = entity
    kinds = (kind, QuotaType.CONTROLLER_MUTATION) if kind is QuotaType.REQUEST else (kind,)
    if tables is not None:
        decisions = ((limiting, tables[limiting].limit(user or "", client_id or "")) for limiting in kinds)
        return [
            f"{limiting.label} {decision.entity.rule}"
            for limiting, decision in decisions
            if decision is not None and decision.entity is not None and isfinite(decision.bound or 0.0)
        ]
    rules = []
    for limiting in kinds:
        present = present_limits.get((limiting, user, client_id))
        if present is not None and present.rule is not None:
            rules.append(f"{limiting.label} {present.rule}")
    return rules or None
