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
"""Number of scrape intervals that are no pause: one scrape may fail."""
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
    Return the episodes of a period in the form of a history's (`pipeline.runs.episodes.find_episodes`).

    Args:
        past: the samples.
        client: user and client id, None for any.
        gaps: times without samples: node, begin and end.
        configured: quotas of today, if they are known; those of the past are in no sample.
        present_limits: limits of today as an exporter shows them.
        progress: called with the number of queries that are done, and of all.

    """
    user, client_id = client
    named = (user is None) != (client_id is None)
    tables = None if configured is None else configured.tables()
    samples: dict[tuple[Entity, str], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    groups = past.groups(throttles=True)
    for _, target, answer in past.ask(groups, {"throttles": promql.throttles}, progress=progress):
        entity = target.kind, target.user, target.client_id
        seen = samples[entity, target.node][target.replica]
        seen += [(at, value * target.factor) for at, value in answer.samples]
    episodes: list[dict[str, Any]] = []
    together = 0
    for (entity, node), by_replica in samples.items():
        # of two servers, the one that saw more
        seen = max(by_replica.values(), key=len)
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
            for began, ended, longest in _joined(sorted(seen), past.interval_of(node))
        ]
        matches = [wanted is None or wanted == (name or "") for wanted, name in zip(client, names, strict=True)]
        if all(matches):
            episodes += rows
        elif named and not names[0 if client_id is None else 1] and any(names):
            together += len(rows)
    return {
        "begin": past.begin,
        "end": past.end,
        "measured_together": together,
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


def _caveats(past: Past) -> Iterator[str]:
    yield HOW_SEEN
    if not past.groups(throttles=True):
        yield "The server has no series of throttle times: agents leave them out, or no client was measured."
    elif past.interval_s > EPISODE_PAUSE_SECONDS:
        missed = 1 - EPISODE_PAUSE_SECONDS / past.interval_s
        yield f"Scrapes every {past.interval_s:.0f} s miss {percent(missed)} of the time: short episodes are missing."


def _joined(samples: Iterable[tuple[float, float]], interval_s: float) -> Iterator[tuple[float, float, float]]:
    """Yield begin, end and highest value of each run of samples without a pause longer than an episode's."""
    pause_s = max(EPISODE_PAUSE_SECONDS, _SCRAPES * interval_s)
    began = ended = longest = None
    for at, value in samples:
        if began is None or ended is None or longest is None:
            began, ended, longest = at, at, value
        elif at - ended > pause_s:
            yield began, ended, longest
            began, ended, longest = at, at, value
        else:
            ended, longest = at, max(longest, value)
    if began is not None and ended is not None and longest is not None:
        yield began, ended, longest


def _rules(
    entity: Entity, tables: Mapping[QuotaType, RuleTable] | None, present_limits: Mapping[Entity, Present]
) -> list[str] | None:
    """
    Return the rules of today that limit an entity; None if they are unknown.

    A request throttle may be of controller mutations: under KRaft, brokers report those so.
    """
    kind, user, client_id = entity
    kinds = (kind, QuotaType.CONTROLLER_MUTATION) if kind is QuotaType.REQUEST else (kind,)
    if tables is not None:
        decisions = ((one, tables[one].limit(user or "", client_id or "")) for one in kinds)
        return [
            f"{one.label} {decision.entity.rule}"
            for one, decision in decisions
            if decision is not None and decision.entity is not None and isfinite(decision.bound or 0.0)
        ]
    limits = [(one, present_limits.get((one, user, client_id))) for one in kinds]
    rules = [f"{one.label} {limit.rule}" for one, limit in limits if limit is not None and limit.rule is not None]
    return rules or None
