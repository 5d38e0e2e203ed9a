"""The entities of custom quota callbacks: their tags become labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from quotascope.metrics import QuotaType

from ..mapping import MILLISECONDS, USAGE
from ..snapshot import Callbacks, Entity, EntityUsage
from .plan import Numbers

MOST_TAGS: Final = 10
"""How many tags are shown."""
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_Key = tuple[str, QuotaType, tuple[str, ...]]


def callbacks(read: Sequence[Numbers]) -> tuple[list[EntityUsage], Callbacks]:
    """
    The entities of all nodes.

    Tags beyond ``MOST_TAGS`` are left out, and entities that differ in nothing else become one: their usages are
    added up, and the longest throttle counts.
    """
    keys = sorted(
        {
            key
            for numbers in read
            for _, tags in numbers.plan.callbacks
            for key, _ in tags
        }
    )
    shown = keys[:MOST_TAGS]
    folded: dict[_Key, EntityUsage] = {}
    for usage in _usages(read, shown):
        entity = usage.entity
        place = (entity.broker, entity.quota_type, entity.tags or ())
        other = folded.get(place)
        folded[place] = usage if other is None else _together(usage, other)
    whole = Callbacks(labels=labels_of(shown), left_out=tuple(keys[MOST_TAGS:]))
    return list(folded.values()), whole


def labels_of(tags: Sequence[str]) -> tuple[str, ...]:
    """A label for each tag: its key where that is a name that is free, or else the nearest such name."""
    labels: list[str] = []
    for tag in tags:
        label = re.sub(r"[^A-Za-z0-9_]", "_", tag)
        if label in _TAKEN or not re.match(r"[A-Za-z]", label):
            label = f"tag_{label}"
        while label in labels:
            label += "_"
        labels.append(label)
    return tuple(labels)


def _usages(read: Sequence[Numbers], shown: Sequence[str]) -> Iterator[EntityUsage]:
    for numbers in read:
        for (quota_type, tags), places in numbers.plan.callbacks.items():
            values = dict(tags)
            usage, throttle_ms = numbers.of(places)
            throttled = (
                throttle_ms / MILLISECONDS
                if isfinite(throttle_ms)
                else places.unthrottled
            )
            yield EntityUsage(
                entity=Entity(
                    broker=numbers.plan.node_id,
                    quota_type=quota_type,
                    user="",
                    client_id="",
                    tags=tuple(values.get(key, "") for key in shown),
                ),
                usage=usage / USAGE[quota_type].divisor if isfinite(usage) else None,
                throttle_time_seconds=throttled or 0.0,
                throttle_known=throttled is not None,
            )


def _together(one: EntityUsage, other: EntityUsage) -> EntityUsage:
    usages = [each.usage for each in (one, other) if each.usage is not None]
    return replace(
        one,
        usage=sum(usages) if usages else None,
        throttle_time_seconds=max(
            one.throttle_time_seconds, other.throttle_time_seconds
        ),
        throttle_known=one.throttle_known or other.throttle_known,
    )
