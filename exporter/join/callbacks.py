"""The entities of custom quota callbacks: their tags become labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from quotascope.metrics import QuotaType

from ..mapping import MILLISECONDS, USAGE
from ..snapshot import Callbacks, CallbackUsage
from .plan import Numbers

MOST_TAGS: Final = 10
"""How many tags are shown."""
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_Key = tuple[str, QuotaType, tuple[str, ...]]


def callbacks(read: Sequence[Numbers]) -> Callbacks:
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
    folded: dict[_Key, CallbackUsage] = {}
    for usage in _usages(read, shown):
        place = (usage.broker, usage.quota_type, usage.tags)
        other = folded.get(place)
        folded[place] = usage if other is None else _together(usage, other)
    return Callbacks(
        labels=labels_of(shown),
        usages=tuple(folded.values()),
        left_out=tuple(keys[MOST_TAGS:]),
    )


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


def _usages(read: Sequence[Numbers], shown: Sequence[str]) -> Iterator[CallbackUsage]:
    for numbers in read:
        for (quota_type, tags), places in numbers.plan.callbacks.items():
            values = dict(tags)
            usage, throttle_ms = numbers.of(places)
            yield CallbackUsage(
                broker=numbers.plan.node_id,
                quota_type=quota_type,
                tags=tuple(values.get(key, "") for key in shown),
                usage=usage / USAGE[quota_type].divisor if isfinite(usage) else None,
                throttle_time_seconds=throttle_ms / MILLISECONDS
                if isfinite(throttle_ms)
                else places.unthrottled,
            )


def _together(one: CallbackUsage, other: CallbackUsage) -> CallbackUsage:
    usages = [each.usage for each in (one, other) if each.usage is not None]
    throttles = (one.throttle_time_seconds, other.throttle_time_seconds)
    return replace(
        one,
        usage=sum(usages) if usages else None,
        throttle_time_seconds=max(
            (each for each in throttles if each is not None), default=None
        ),
    )
