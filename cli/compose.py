"""Puts the parts of the exporter together as the configuration says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from quotascope.alerts.runbook import runbooks
from quotascope.clients.adapter import open_quota_admin
from quotascope.clients.quota_admin import QuotaAdmin
from quotascope.exporter.app import Exporter, Reloader, build_parts
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.discovery import Discovery, Roster
from quotascope.exporter.discovery.discovery import discovery_of
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits.admin import connection_of
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import OwnHealth

_NO_SOURCE = (
    "no source: give --source or --discover, or a file with `sources` or `discovery` (see `quotascope config example`)"
)
_NO_KAFKA = "no Kafka: give --bootstrap-servers, or a file with `kafka` (see `quotascope config example`)"


def build_exporter(config: Config, read: Callable[[], Config] | None = None) -> tuple[Exporter, Reloader]:
    """
    The exporter, not started yet, and what swaps it to the configuration that ``read`` returns then: the same when None.

    Raises ``ConfigError`` and ``ClientError``.
    """
    build = partial(build_parts, open_admin=admin_of, environ=os.environ)
    parts = build(loaded(with_source(config)))

    def again() -> Config:
        return with_source(config if read is None else read())

    reloader = Reloader(again, build, configure_logs)
    return Exporter(parts, runbooks=dict(runbooks()), reloader=reloader), reloader


def with_source(config: Config) -> Config:
    """The configuration, if it has a source or a discovery. Else raises ``ConfigError``."""
    if not config.sources and not config.discovery.wanted:
        raise ConfigError("configuration", [_NO_SOURCE])
    return config


def kafka_of(config: Config) -> KafkaConfig:
    """How to reach the Admin API. Raises ``ConfigError`` when that is not configured."""
    if config.kafka is None:
        raise ConfigError("configuration", [_NO_KAFKA])
    return config.kafka


def admin_of(kafka: KafkaConfig) -> QuotaAdmin:
    """The Admin API; it connects with the first call. Raises ``ConfigError`` and ``ClientError``."""
    return open_quota_admin(connection_of(kafka))


def _impatient(config: Config) -> Config:
    """With sources that are given up before the collection is, each with a message that names its host and port."""
    most = 0.8 * config.collection.timeout_seconds

    def within(each: Any) -> Any:  # noqa: ANN401 - a source, or the settings of those that are found
        return each.model_copy(update={"timeout_seconds": min(each.timeout_seconds, most)})

    discovery = config.discovery.model_copy(update={"source": within(config.discovery.source)})
    return config.model_copy(update={"sources": tuple(map(within, config.sources)), "discovery": discovery})


@asynccontextmanager
async def build_collection(config: Config, *, watch: bool = False) -> AsyncIterator[Collection]:
    """
    A collection after limits were read and nodes discovered: once, or repeatedly with ``watch``.

    Raises ``ConfigError`` and ``ClientError``.
    """
    # what reads for a command pushes nothing
    alone = with_source(config).model_copy(update={"otlp": None})
    parts = build_parts(loaded(alone if watch else _impatient(alone)), open_admin=admin_of, environ=os.environ)
    roster, refresh = Roster(parts.sources), LimitsRefresh(*parts.limits_reading)
    discovery = discovery_of(parts.config, parts.finders, roster)
    followed: list[LimitsRefresh | Discovery] = [refresh] if discovery is None else [refresh, discovery]
    if not watch:
        await asyncio.gather(*(each.refresh() for each in followed))
    tasks = [asyncio.create_task(each.run()) for each in followed if watch]
    timeout_seconds = config.collection.timeout_seconds
    cardinality = Cardinality(config.cardinality)
    collection = Collection(
        roster,
        refresh,
        cardinality=cardinality,
        own=lambda: OwnHealth(discoveries=() if discovery is None else (*discovery.health.values(),)),
        # a source is waited for half of it; a single look has no later one in which the answer could be
        patience_seconds=timeout_seconds if watch else 2 * timeout_seconds,
        shadows=Shadows(parts.shadows, config.shadow.max_entities, cardinality.allows),
    )
    try:
        yield collection
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await collection.close()
        if discovery is not None:
            await discovery.close()
        if parts.limits is not None:
            await parts.limits.close()
