"""From an exporter's page to a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from quotascope.metrics import NO_RULE, QuotaType, catalog
from quotascope.metrics.catalog import OVERFLOW

from ..errors import SourceUnreadable
from ..exposition.rows import in_base_unit
from ..join.limiting import deciding
from ..limits import Limits
from ..snapshot import (
    Columns,
    ConnectionUsage,
    Entity,
    EntityUsage,
    LimitedRate,
    NodeUsage,
    Snapshot,
    SourceHealth,
    ThrottleCause,
)
from ..untrusted import shown
from .limits import limits_of_page
from .samples import Page, Sample

_USAGE: Final = {
    QuotaType.PRODUCE: catalog.PRODUCE_BYTES_PER_SECOND,
    QuotaType.FETCH: catalog.FETCH_BYTES_PER_SECOND,
    QuotaType.REQUEST: catalog.REQUEST_THREADS,
    QuotaType.CONTROLLER_MUTATION: catalog.CONTROLLER_MUTATIONS_PER_SECOND,
}
_TYPES: Final = {kind.label: kind for kind in QuotaType}

_Key = tuple[QuotaType, str, str, str]
"""Quota type, broker, user and client id."""


def snapshot_of_page(
    answer: bytes, taken_at: float, limits: Limits | None = None
) -> Snapshot:
    """
    What an exporter showed.

    Raises ``SourceUnreadable`` when it is no page of quotascope.

    Args:
        answer: the text of ``/metrics``.
        taken_at: when, Unix time in seconds.
        limits: the configured quotas, where they are known better; else those of the page.

    """
    page = Page(answer)
    try:
        return _snapshot(page, taken_at, limits or limits_of_page(page, taken_at))
    except (KeyError, ValueError) as error:
        raise SourceUnreadable(
            f"the page is not one of this version of quotascope: {shown(error)}"
        ) from None


def _snapshot(page: Page, taken_at: float, limits: Limits | None) -> Snapshot:
    nodes = tuple(_nodes(page))
    callback = any(node.quota_callback for node in nodes)
    return Snapshot(
        taken_at=taken_at,
        shown=Columns.of(_entities(page, deciding(limits, callback_seen=callback))),
        nodes=nodes,
        sources=tuple(_sources(page)),
        limits=limits,
    )


def _entities(page: Page, limits: Limits | None) -> Iterator[EntityUsage]:
    throttles = _by_key(page.samples(catalog.THROTTLE_TIME_SECONDS))
    tokens = {
        _key(QuotaType.CONTROLLER_MUTATION, sample): sample.value
        for sample in page.samples(catalog.CONTROLLER_MUTATION_TOKENS)
    }
    causes = {
        _key(_TYPES[sample.labels["quota_type"]], sample): ThrottleCause(
            sample.labels["cause"]
        )
        for sample in page.samples(catalog.THROTTLE_CAUSE_INFO)
    }
    bursts = {
        (
            QuotaType.CONTROLLER_MUTATION,
            sample.labels["user"],
            sample.labels["client_id"],
        ): sample.value
        for sample in page.samples(catalog.CONTROLLER_MUTATION_BURST)
    }
    for key, usage in _usages(page):
        yield EntityUsage(
            entity=_entity(key, limits, bursts.get((key[0], *key[2:]))),
            usage=usage,
            throttle_time_seconds=throttles.get(key, 0.0),
            throttle_known=key in throttles,
            tokens=tokens.get(key),
            cause=causes.get(key),
        )


def _usages(page: Page) -> Iterator[tuple[_Key, float]]:
    for kind, family in _USAGE.items():
        for sample in page.samples(family):
            key = _key(kind, sample)
            if key[2:] != (OVERFLOW, OVERFLOW):
                yield key, sample.value


def _entity(key: _Key, limits: Limits | None, burst: float | None) -> Entity:
    kind, broker, user, client_id = key
    rule = bound = None
    if limits is not None:
        rules = limits.rules.get(kind)
        rule = (rules.limit(user, client_id) if rules else None) or NO_RULE
        bound = rule.bound
    return Entity(
        broker=broker,
        quota_type=kind,
        user=user,
        client_id=client_id,
        resolution=rule,
        limit=None if bound is None else in_base_unit(kind, bound),
        burst_tokens=burst,
    )


def _by_key(samples: list[Sample]) -> dict[_Key, float]:
    return {
        _key(_TYPES[sample.labels["quota_type"]], sample): sample.value
        for sample in samples
    }


def _key(kind: QuotaType, sample: Sample) -> _Key:
    labels = sample.labels
    return kind, labels["broker"], labels["user"], labels["client_id"]


def _nodes(page: Page) -> Iterator[NodeUsage]:
    ips: dict[str, dict[str, LimitedRate]] = defaultdict(dict)
    queues: dict[str, dict[QuotaType, float]] = defaultdict(dict)
    for sample in page.samples(catalog.IP_CONNECTIONS_PER_SECOND):
        rate = LimitedRate(rate=sample.value)
        ips[sample.labels["broker"]][sample.labels["ip"]] = rate
    for sample in page.samples(catalog.DELAY_QUEUE_SIZE):
        kind = _TYPES[sample.labels["quota_type"]]
        queues[sample.labels["broker"]][kind] = sample.value
    callbacks = {
        sample.labels["broker"]: sample.value == 1
        for sample in page.samples(catalog.CALLBACK_DETECTED)
    }
    for broker in sorted({*ips, *queues, *callbacks}):
        yield NodeUsage(
            broker=broker,
            quota_callback=callbacks.get(broker, False),
            delay_queue_size=queues[broker],
            connections=ConnectionUsage(ips=ips[broker]),
        )


def _sources(page: Page) -> Iterator[SourceHealth]:
    took = {
        sample.labels["source"]: sample.value
        for sample in page.samples(catalog.SOURCE_DURATION_SECONDS)
    }
    for sample in page.samples(catalog.SOURCE_UP):
        name = sample.labels["source"]
        yield SourceHealth(
            name=name,
            dialect="quotascope",
            up=sample.value == 1,
            duration_seconds=took.get(name, 0.0),
            error=None if sample.value == 1 else "the exporter cannot read it",
        )
