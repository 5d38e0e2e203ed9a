"""The page of an entity: which rules apply to it, what it used in the last minutes, and its throttle episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages import words

from ..diagnosis.cluster_usage import cluster_sentence, cluster_usages
from ..diagnosis.episodes import Episode, Episodes
from ..diagnosis.explain import (
    Explanation,
    asked_client,
    asked_user,
    counting,
    explain,
    level_text,
    overruling,
    sentence,
    user_of,
)
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.trails import Trails
from ..diagnosis.units import entity_name, rule_or_cause, seconds, type_name
from ..names import asked_as
from ..snapshot import Entity, EntityUsage, Snapshot, Usages
from ..untrusted import one_line
from .columns import ENTITY_PAGE_COLUMNS, TableRow, trail_drawing
from .render import PageFrame, as_of, clock_time, entity_address, name, render

_THROTTLED: Final = "KafkaQuotaClientThrottled"
"""The alert on a throttled client of any quota type."""
_NEAR_LIMIT: Final = "KafkaQuotaNearLimit"
_TOKENS: Final = "KafkaQuotaMutationTokensExhausted"
_MOST: Final = 100
"""Most rows of each table, and most drawings."""
_LONGEST: Final = 32_767
"""Longest name in Kafka's protocol, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityResult:
    """The state of one user and client-id in a snapshot."""

    snapshot: Snapshot
    user: str | None
    """None for any user that no quota names."""
    client_id: str | None
    """None for any client-id that no quota names, empty for clients that send none."""
    explanations: Sequence[Explanation] | None
    """Explanations by quota type; None when the configured quotas are unknown."""
    callbacks: Mapping[str, str]
    """Nodes with a custom quota callback, which decides there instead, with its class."""
    rows: Usages
    """Measured entities of this user and client-id, the most urgent first."""
    trails: Trails
    episodes: Sequence[Episode]
    """Episodes since the exporter started, the latest first."""
    unseen_seconds: float
    """Seconds since the exporter started in which other episodes may have been missed (`Episodes.gaps`)."""


def asked_entity(parameters: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return user and client-id of a query; None for an empty user."""
    user, client_id = parameters.get("user"), parameters.get("client_id")
    known_client = None if client_id is None else asked_as(client_id[:_LONGEST])
    return (asked_as(user[:_LONGEST]) if user else None), known_client


def find_entity(
    snapshot: Snapshot, trails: Trails, episodes: Episodes, user: str | None, client_id: str | None
) -> EntityResult:
    """Explain a user (or its principal, ``User:alice``) and client-id, and find the entities measured of them."""
    limits = snapshot.limits
    if limits is not None and user is not None:
        user = user_of(limits, user)
    explanations = None if limits is None else explain(limits, user, client_id, snapshot.nodes)
    counts = counting(explanations or (), user, client_id)
    measured = snapshot.measured
    entities: Sequence[Entity] = measured.columns.layout.entities[measured.rows].tolist()
    is_counted = np.array([*map(counts, entities)], np.bool_)
    rows = Usages(measured.columns, measured.rows[is_counted])
    return EntityResult(
        snapshot=snapshot,
        user=user,
        client_id=client_id,
        explanations=explanations,
        callbacks={} if limits is None else overruling(limits),
        rows=in_order(rows, Selection(near_limit=snapshot.thresholds.near_limit)),
        trails=trails,
        episodes=[episode for episode in episodes if counts(episode.usage.entity)],
        unseen_seconds=sum(end - begin for begin, end in episodes.gaps),
    )


def entity_page(result: EntityResult | None, frame: PageFrame) -> str:
    """Return the page as HTML; None before the first collection."""
    values: dict[str, object] = {}
    if result is not None:
        user, client_id = result.user, result.client_id
        heading = entity_name(user or "", client_id or "")
        if user is None and not client_id:
            heading = "clients that no quota names" if client_id is None else "clients without a client-id"
        rows, near_limit = result.rows[:_MOST], result.snapshot.thresholds.near_limit
        past = [(usage, result.trails.trail(usage.entity)) for usage in rows]
        question = f"{asked_user(user)}, {asked_client(client_id)}"
        values = {
            **as_of(result.snapshot),
            "entity": heading,
            "asked": one_line(question, 500),
            "sentences": [
                one_line(sentence(explanation, user, client_id), 1_000) for explanation in result.explanations or ()
            ],
            "callbacks": [(node, name(callback)) for node, callback in result.callbacks.items()],
            "levels_of": list(_levels(result)),
            "types": [type_name(kind) for kind in QuotaType],
            "columns": [
                {"header": column.header, "kind": column.kind, "address": "", "sorted": ""}
                for column in ENTITY_PAGE_COLUMNS
            ],
            "rows": [
                [column.cell(TableRow(usage=usage, near_limit=near_limit)) for column in ENTITY_PAGE_COLUMNS]
                for usage in rows
            ],
            "of_cluster": [
                one_line(cluster_sentence(usage), 500)
                for usage in islice(cluster_usages(result.snapshot, result.rows), _MOST)
            ],
            "runbooks_of": list(_runbooks(result)) if frame.runbooks else [],
            "count": len(result.rows),
            "drawings": [
                (
                    _row_name(usage),
                    trail_drawing(trail, usage.entity.quota_type, near_limit),
                    clock_time(trail.times[0]),
                    clock_time(trail.times[-1]),
                )
                for usage, trail in past
                if trail is not None
            ],
            "episodes": [
                (
                    _row_name(episode.usage),
                    _day_time(episode.began_at),
                    "ongoing" if episode.ongoing else _day_time(episode.seen_at),
                    words.seconds(episode.seen_at - episode.began_at),
                    seconds(episode.longest_seconds),
                    rule_or_cause(episode.usage),
                )
                for episode in result.episodes[:_MOST]
            ],
            "unseen": words.seconds(result.unseen_seconds) if result.unseen_seconds else "",
            "board": frame.board_of(user, client_id),
            "json": entity_address(user, client_id, "api/v1/explain"),
        }
    return render("entity.html", frame, here="", result=result, problem="", **values)


def _day_time(unix_seconds: float) -> str:
    """Return month, day and time of day of a Unix time; UTC."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%m-%d %H:%M:%S")


def _row_name(usage: EntityUsage) -> str:
    """Return the quota type, node and names of an entity, as the heading of a drawing or of a row."""
    entity = usage.entity
    names = entity_name(entity.user, entity.client_id)
    return f"{type_name(entity.quota_type)}, node {name(entity.broker)}: {names}"


def _runbooks(result: EntityResult) -> Iterator[tuple[str, str]]:
    """Yield why an alert on the entity may fire, and the address of its runbook with the names of the entity in it."""
    alerts: dict[str, str] = {}
    for usage in result.rows[:_MOST]:
        kind, near_limit = usage.entity.quota_type, result.snapshot.thresholds.near_limit
        if usage.throttled:
            alerts[f"{type_name(kind)}, throttled"] = _THROTTLED
        elif (usage.used or 0.0) >= near_limit:
            alerts[f"{type_name(kind)}, near its limit"] = _NEAR_LIMIT
        elif (usage.burst_used or 0.0) >= near_limit:
            alerts[f"{type_name(kind)}, few tokens left"] = _TOKENS
    for state, alert in sorted(alerts.items()):
        if address := entity_address(result.user, result.client_id, f"runbooks/{alert}"):
            yield state, address


def _levels(result: EntityResult) -> Iterator[tuple[int, str, list[tuple[str, str]]]]:
    """
    Yield a row for each of Kafka's levels.

    A row has the level's number, the client that a quota there is for, and for each quota type a value and its state.
    """
    explanations = result.explanations or ()
    rows = zip(*(explanation.levels for explanation in explanations), strict=True)
    for place, rules in enumerate(rows, start=1):
        text = level_text(rules[0].entity, result.user, result.client_id)
        cells = []
        for explanation, rule in zip(explanations, rules, strict=True):
            if rule.bound is None:
                cells.append(("-", "unset"))
                continue
            amount = f"{rule.bound:,.10g}"
            if not rule.applies:
                cells.append((f"({amount})", "unset"))
            elif rule.entity == explanation.decision.entity:
                cells.append((f"{amount} applies", "applies"))
            else:
                cells.append((f"{amount} overruled", ""))
        yield place, one_line(text, 500), cells
