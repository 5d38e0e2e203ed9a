"""Puts the parts of the exporter together as the configuration says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quotascope.clients.adapter import open_quota_admin
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.discovery import Discovery, Roster
from quotascope.exporter.discovery.build import build_roster
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits import LimitsSource
from quotascope.exporter.limits.admin import AdminLimits
from quotascope.exporter.limits.build import connection_of
from quotascope.exporter.limits.refresh import LimitsKeeper, LimitsRefresh, NoLimits
from quotascope.exporter.otlp import build_push
from quotascope.exporter.service import Exporter

_NO_SOURCE = "no source: give --source or --discover, or a file with `sources` or `discovery` (see `quotascope config example`)"
_NO_KAFKA = "no Kafka: give --bootstrap-servers, or a file with `kafka` (see `quotascope config example`)"


def build_exporter(config: Config) -> Exporter:
    """The exporter, not started yet. Raises ``ConfigError`` and ``ClientError``."""
    kafka = config.kafka
    push = build_push(config, os.environ)
    roster, discovery = roster_of(config)
    if kafka is None:
        return Exporter(config, roster, None, discovery=discovery, push=push)
    return Exporter(
        config,
        roster,
        limits_of(kafka),
        discovery=discovery,
        push=push,
        refresh_seconds=kafka.refresh_interval_seconds,
        limits_timeout_seconds=read_timeout(kafka),
    )


def roster_of(config: Config) -> tuple[Roster, Discovery | None]:
    """The sources, or what finds them. Raises ``ConfigError`` and ``ClientError``."""
    if not config.sources and not config.discovery.wanted:
        raise ConfigError("configuration", [_NO_SOURCE])
    return build_roster(config, lambda kafka: open_quota_admin(connection_of(kafka)))


def kafka_of(config: Config) -> KafkaConfig:
    """How to reach the Admin API. Raises ``ConfigError`` when the configuration does not say."""
    if config.kafka is None:
        raise ConfigError("configuration", [_NO_KAFKA])
    return config.kafka


def limits_of(kafka: KafkaConfig) -> LimitsSource:
    """What reads the configured limits; it connects with the first read. Raises ``ConfigError`` and ``ClientError``."""
    return AdminLimits(open_quota_admin(connection_of(kafka)))


def read_timeout(kafka: KafkaConfig) -> float:
    """Seconds for one complete read: each of its few requests has its own timeout, this one is for what hangs."""
    return 4 * kafka.timeout_seconds


@asynccontextmanager
async def build_collection(config: Config) -> AsyncIterator[Collection]:
    """A collection whose limits were read once, for a single look. Raises ``ConfigError`` and ``ClientError``."""
    roster, discovery = roster_of(config)
    keeper: LimitsKeeper = NoLimits()
    limits = limits_of(config.kafka) if config.kafka else None
    looks = [] if discovery is None else [discovery.refresh()]
    if limits is not None and config.kafka is not None:
        keeper = refresh = LimitsRefresh(limits, read_timeout(config.kafka))
        looks.append(refresh.refresh())
    await asyncio.gather(*looks)
    collection = Collection(roster, keeper, cardinality=Cardinality(config.cardinality))
    try:
        yield collection
    finally:
        await collection.close()
        if discovery is not None:
            await discovery.close()
        if limits is not None:
            await limits.close()
