"""Puts the parts of the exporter together as the configuration says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from quotascope.alerts.runbook import runbooks
from quotascope.clients.adapter import open_quota_admin
from quotascope.clients.quota_admin import QuotaAdmin
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.config.loaded import loaded
from quotascope.exporter.discovery import Discovery, Roster
from quotascope.exporter.discovery.build import build_roster
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits import LimitsSource
from quotascope.exporter.limits.admin import AdminLimits
from quotascope.exporter.limits.build import connection_of, read_timeout
from quotascope.exporter.limits.refresh import LimitsKeeper, LimitsRefresh, NoLimits
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.parts import Builder
from quotascope.exporter.reload import Reloader
from quotascope.exporter.service import Exporter, exporter_of
from quotascope.exporter.snapshot import OwnHealth

_Look = Callable[[], Coroutine[object, object, None]]

_NO_SOURCE = "no source: give --source or --discover, or a file with `sources` or `discovery` (see `quotascope config example`)"
_NO_KAFKA = "no Kafka: give --bootstrap-servers, or a file with `kafka` (see `quotascope config example`)"


def build_exporter(
    config: Config, read: Callable[[], Config] | None = None
) -> tuple[Exporter, Reloader]:
    """
    The exporter, not started yet, and what lets it go on with what ``read`` gives then: the same when None.

    Raises ``ConfigError`` and ``ClientError``.
    """
    builder = Builder(admin_of, os.environ)
    parts = builder.build(loaded(with_source(config)))

    def again() -> Config:
        return with_source(config if read is None else read())

    reloader = Reloader(again, builder, configure_logs)
    return exporter_of(parts, dict(runbooks()), reloader), reloader


def roster_of(config: Config) -> tuple[Roster, Discovery | None]:
    """The sources, or what finds them. Raises ``ConfigError`` and ``ClientError``."""
    return build_roster(with_source(config), admin_of)


def with_source(config: Config) -> Config:
    """The configuration, when it says whom to read. Else raises ``ConfigError``."""
    if not config.sources and not config.discovery.wanted:
        raise ConfigError("configuration", [_NO_SOURCE])
    return config


def kafka_of(config: Config) -> KafkaConfig:
    """How to reach the Admin API. Raises ``ConfigError`` when the configuration does not say."""
    if config.kafka is None:
        raise ConfigError("configuration", [_NO_KAFKA])
    return config.kafka


def admin_of(kafka: KafkaConfig) -> QuotaAdmin:
    """The Admin API; it connects with the first call. Raises ``ConfigError`` and ``ClientError``."""
    return open_quota_admin(connection_of(kafka))


def limits_of(kafka: KafkaConfig) -> LimitsSource:
    """What reads the configured limits; it connects with the first read. Raises ``ConfigError`` and ``ClientError``."""
    return AdminLimits(admin_of(kafka))


@asynccontextmanager
async def build_collection(
    config: Config, *, watch: bool = False
) -> AsyncIterator[Collection]:
    """
    A collection after limits were read and nodes discovered: once, or repeatedly with ``watch``.

    Raises ``ConfigError`` and ``ClientError``.
    """
    roster, discovery = roster_of(config)
    keeper: LimitsKeeper = NoLimits()
    limits = limits_of(config.kafka) if config.kafka else None
    once: list[_Look] = [] if discovery is None else [discovery.refresh]
    always: list[_Look] = [] if discovery is None else [discovery.run]
    if limits is not None and config.kafka is not None:
        keeper = refresh = LimitsRefresh(limits, read_timeout(config.kafka))
        once.append(refresh.refresh)
        interval_seconds = config.kafka.refresh_interval_seconds
        always.append(lambda: refresh.run(interval_seconds))
    if not watch:
        await asyncio.gather(*(look() for look in once))
    tasks = [asyncio.create_task(look()) for look in always if watch]
    timeout_seconds = config.collection.timeout_seconds
    collection = Collection(
        roster,
        keeper,
        cardinality=Cardinality(config.cardinality),
        own=lambda: OwnHealth(
            discoveries=() if discovery is None else (*discovery.health.values(),)
        ),
        # a source is waited for half of it; a single look has no later one in which the answer could be
        patience_seconds=timeout_seconds if watch else 2 * timeout_seconds,
    )
    try:
        yield collection
    finally:
        await _cancelled(tasks)
        await collection.close()
        if discovery is not None:
            await discovery.close()
        if limits is not None:
            await limits.close()


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
