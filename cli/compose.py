"""Assembly of the exporter's parts, as the configuration says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from quotascope.alerts.runbook import runbooks, summaries
from quotascope.clients.adapter import open_quota_admin
from quotascope.clients.quota_admin import QuotaAdmin
from quotascope.exporter.alert_terms import AlertTerms
from quotascope.exporter.app import Exporter, Reloader, build_parts
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, KafkaConfig, PrometheusSourceConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.discovery import Discovery, Roster
from quotascope.exporter.discovery.discovery import discovery_of
from quotascope.exporter.errors import WITHOUT_FILE, ConfigError
from quotascope.exporter.limits.admin import connection_of
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.logs import LogWriter, configure_logs
from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import OwnHealth

_NO_SOURCE = "no source: give {options}, or a file with `sources` or `discovery` (see `quotascope config example`)"
_OF_EXPORTER = "--source or --discover"
_OF_READERS = "--exporter, --source or --discover"
"""Options of commands that also read a running exporter."""
_NO_KAFKA = "no Kafka: give --bootstrap-servers, or a file with `kafka` (see `quotascope config example`)"


def build_exporter(
    config: Config, read_config: Callable[[], Config] | None = None, log: LogWriter | None = None
) -> tuple[Exporter, Reloader]:
    """
    Return the exporter, not started yet, and its reloader.

    The reloader uses the configuration that ``read_config`` returns then, or the same one without it. ``log`` writes
    the exporter's log; without it, lines go to standard error at once.
    Raises ``ConfigError`` and ``ClientError``.
    """
    build = partial(build_parts, open_admin=admin_of, read_terms=alert_terms, environ=os.environ)
    parts = build(loaded(with_source(config)))

    def again() -> Config:
        return with_source(config if read_config is None else read_config())

    reloader = Reloader(again, build, partial(configure_logs, stream=log))
    exporter = Exporter(parts, runbooks=dict(runbooks()), summaries=summaries(), reloader=reloader, log=log)
    return exporter, reloader


def with_source(config: Config, options: str = _OF_EXPORTER) -> Config:
    """Return the configuration if it has a source or a discovery. Raises ``ConfigError`` with the options otherwise."""
    if not config.sources and not config.discovery.wanted:
        raise ConfigError(WITHOUT_FILE, [_NO_SOURCE.format(options=options)])
    return config


def kafka_of(config: Config) -> KafkaConfig:
    """Return the connection to the Admin API. Raises ``ConfigError`` if there is none."""
    if config.kafka is None:
        raise ConfigError(WITHOUT_FILE, [_NO_KAFKA])
    return config.kafka


def admin_of(kafka: KafkaConfig) -> QuotaAdmin:
    """Return the Admin API; it connects with the first call. Raises ``ConfigError`` and ``ClientError``."""
    return open_quota_admin(connection_of(kafka))


def alert_terms(path: Path) -> AlertTerms:
    """Return the thresholds and teams in the configuration of the alerts. Raises ``ConfigError``."""
    from .alerts_config import read_alert_terms  # imported here, since its models are built from all alerts

    return read_alert_terms(path)


def _with_shorter_timeouts(config: Config) -> Config:
    """Return a configuration whose sources time out before the collection does, so that messages name their hosts."""
    limit = 0.8 * config.collection.timeout_seconds

    def shortened(source: Any) -> Any:  # noqa: ANN401 - a source, or the settings of those that are found
        if isinstance(source, PrometheusSourceConfig):
            return source.model_copy(update={"prometheus": shortened(source.prometheus)})
        return source.model_copy(update={"timeout_seconds": min(source.timeout_seconds, limit)})

    discovery = config.discovery.model_copy(update={"source": shortened(config.discovery.source)})
    return config.model_copy(update={"sources": tuple(map(shortened, config.sources)), "discovery": discovery})


@asynccontextmanager
async def build_collection(config: Config, *, watch: bool = False) -> AsyncIterator[Collection]:
    """
    Yield a collection after limits were read and nodes discovered: once, or repeatedly with ``watch``.

    Raises ``ConfigError`` and ``ClientError``.
    """
    # a command that reads pushes nothing
    without_push = with_source(config, _OF_READERS).model_copy(update={"otlp": None})
    settings = loaded(without_push if watch else _with_shorter_timeouts(without_push))
    parts = build_parts(settings, open_admin=admin_of, read_terms=alert_terms, environ=os.environ)
    roster, refresh = Roster(parts.sources), LimitsRefresh(*parts.limits_reading)
    discovery = discovery_of(parts.config, parts.finders, roster)
    parts_to_refresh: list[LimitsRefresh | Discovery] = [refresh] if discovery is None else [refresh, discovery]
    tasks: list[asyncio.Task[None]] = []
    if watch:
        tasks += [asyncio.create_task(part.run()) for part in parts_to_refresh]
    else:
        await asyncio.gather(*(part.refresh() for part in parts_to_refresh))
    timeout_seconds = config.collection.timeout_seconds
    cardinality = Cardinality(config.cardinality)
    collection = Collection(
        roster,
        refresh,
        cardinality=cardinality,
        own_health=lambda: OwnHealth(discoveries=() if discovery is None else (*discovery.health.values(),)),
        # a collection waits for half of this time for a source; if it is the only one, it needs all of the timeout
        patience_seconds=timeout_seconds if watch else 2 * timeout_seconds,
        shadows=Shadows(parts.shadows, config.shadow.max_entities, cardinality.allows),
        thresholds=parts.alert_terms.thresholds,
        teams=parts.alert_terms.teams,
        capacity=config.broker_capacity.by_type,
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
