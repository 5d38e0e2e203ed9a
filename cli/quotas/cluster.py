"""What the commands read: the configured quotas, and who uses how much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from quotascope.clients.quota_admin import QuotaAdmin
    from quotascope.exporter.config import Config
    from quotascope.exporter.limits import Limits
    from quotascope.exporter.snapshot import Snapshot
    from quotascope.exporter.sources.fetch import HttpTarget
    from quotascope.quotas import QuotaSet


@contextmanager
def admin(config: Config) -> Iterator[QuotaAdmin]:
    """The Admin API, closed at the end. Raises ``ConfigError`` and ``ClientError``."""
    from ..compose import admin_of, kafka_of

    opened = admin_of(kafka_of(config))
    try:
        yield opened
    finally:
        opened.close()


def configured(config: Config, exporter: HttpTarget | None = None) -> QuotaSet:
    """The quotas of the cluster, as Kafka or an exporter knows them. Raises ``ConfigError``, ``ClientError``, ``QuotasError`` and ``ExporterError``."""
    from quotascope.exporter.limits import CONNECTION_KEY, DEFAULT_IP
    from quotascope.metrics import DEFAULT
    from quotascope.quotas import IpEntity, QuotaSet

    from ..explain import exporter_limits

    if exporter is not None:
        limits, _ = asyncio.run(exporter_limits(exporter))
        quotas = limits.quotas()
        for ip, value in limits.connection_limits.items():
            address = IpEntity(DEFAULT if ip == DEFAULT_IP else ip)
            quotas[address] = {CONNECTION_KEY: value}
        return QuotaSet(quotas)
    with admin(config) as opened:
        return QuotaSet.of(opened.describe_quotas())


def usage(config: Config, exporter: HttpTarget | None) -> Snapshot | None:
    """The usage of entities, from an exporter or from the brokers; None when neither is named. Reports what cannot be read."""
    from quotascope.exporter.diagnosis import FindingSeverity

    from ..explain import warn_of_callbacks
    from ..status import observe

    if exporter is None and not config.sources and not config.discovery.wanted:
        return None
    snapshot, findings = asyncio.run(observe(config, exporter))
    for finding in findings:
        if finding.severity is FindingSeverity.ERROR:
            typer.echo(f"quotascope: {finding.text} {finding.advice}".rstrip(), err=True)
    warn_of_callbacks(snapshot.limits)
    return snapshot


def limits_and_usage(config: Config, exporter: HttpTarget | None) -> tuple[Limits, Snapshot | None]:
    """The rules and the entities under them. Without Kafka's Admin API, an exporter's page has both."""
    from quotascope.exporter.api.client import read_exporter
    from quotascope.exporter.errors import LimitsError

    from ..explain import read_limits, warn_of_callbacks

    if exporter is None:
        snapshot = usage(config, None)
        if snapshot is None:
            limits = asyncio.run(read_limits(config))
            warn_of_callbacks(limits)
            return limits, None
    elif config.kafka is None:
        snapshot = usage(config, exporter)
    else:
        limits = asyncio.run(read_limits(config))
        warn_of_callbacks(limits)
        snapshot, _ = asyncio.run(read_exporter(exporter, limits))
    if snapshot is None or snapshot.limits is None:
        reason = snapshot.limits_health.error if snapshot else None
        raise LimitsError(reason or "the configured quotas are not known: give --bootstrap-servers")
    return snapshot.limits, snapshot
