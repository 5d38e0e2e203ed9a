"""What commands read: the configured quotas, and who uses how much. Imported by a command when it runs, for it loads the exporter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer

from quotascope.clients.quota_admin import QuotaAdmin
from quotascope.exporter.api.client import Observed, read_exporter
from quotascope.exporter.config import Config
from quotascope.exporter.diagnosis import Finding, FindingSeverity, diagnose
from quotascope.exporter.diagnosis.explain import overruling
from quotascope.exporter.errors import ConfigError, LimitsError
from quotascope.exporter.limits import CONNECTION_KEY, DEFAULT_IP, Limits
from quotascope.exporter.limits.admin import AdminLimits
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import DEFAULT
from quotascope.quotas import IpEntity, QuotaSet

from .compose import admin_of, build_collection, kafka_of


@contextmanager
def admin(config: Config) -> Iterator[QuotaAdmin]:
    """The Admin API, closed at the end. Raises ``ConfigError`` and ``ClientError``."""
    opened = admin_of(kafka_of(config))
    try:
        yield opened
    finally:
        opened.close()


async def observe(config: Config, exporter: HttpTarget | None) -> Observed:
    """One snapshot and its findings, of a running exporter or of the brokers. Raises ``ConfigError``, ``ClientError`` and ``SourceError``."""
    configure_logs(config.log)
    if exporter is not None:
        return await read_exporter(exporter)
    async with build_collection(config) as collection:
        snapshot = await collection.snapshot(config.collection.timeout_seconds)
    return snapshot, diagnose(snapshot)


async def read_limits(config: Config) -> Limits:
    """The configured limits, read once. Raises ``LimitsError``, ``ConfigError`` and ``ClientError``."""
    source = AdminLimits(admin_of(kafka_of(config)))
    try:
        return await source.read()
    finally:
        await source.close()


async def exporter_limits(target: HttpTarget) -> tuple[Limits, Sequence[NodeUsage]]:
    """The limits that a running exporter knows, and what nodes report of themselves. Raises ``LimitsError`` when it knows none, and ``SourceError``."""
    snapshot, findings = await read_exporter(target)
    if snapshot.limits is not None:
        return snapshot.limits, snapshot.nodes
    reasons = (one_line(each.text) for each in findings if each.check in {"kafka", "exporter"})
    reason = next(reasons, "it does not know the configured quotas")
    raise LimitsError(f"{target.url} reports no limits, give --bootstrap-servers to read them from Kafka: {reason}")


def configured(config: Config, exporter: HttpTarget | None = None) -> QuotaSet:
    """The quotas of the cluster, as Kafka or an exporter knows them. Raises ``ConfigError``, ``ClientError``, ``QuotasError`` and ``ExporterError``."""
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
    if exporter is None and not config.sources and not config.discovery.wanted:
        return None
    snapshot, findings = asyncio.run(observe(config, exporter))
    report_errors(findings)
    warn_of_callbacks(snapshot.limits)
    return snapshot


def refuse_other_cluster(cluster_id: str | None, exporter: HttpTarget, snapshot: Snapshot) -> None:
    """Raise ``ConfigError`` where an exporter reads another cluster than the one with this id, as far as it is known of both."""
    other = snapshot.limits_health.cluster_id
    if cluster_id and other and other != cluster_id:
        problem = (
            f"{exporter.url} reads the Kafka cluster {one_line(other)}, and the bootstrap servers are of {one_line(cluster_id)}: "
            "name an exporter and bootstrap servers of the same cluster"
        )
        raise ConfigError("--exporter", [problem])


def limits_and_usage(config: Config, exporter: HttpTarget | None) -> tuple[Limits, Snapshot | None]:
    """The rules and the entities under them. Without Kafka's Admin API, an exporter's page has both. Raises ``ConfigError`` for two clusters."""
    snapshot = None if exporter is not None and config.kafka is not None else usage(config, exporter)
    if snapshot is None:
        limits = asyncio.run(read_limits(config))
        warn_of_callbacks(limits)
        if exporter is not None:
            snapshot, _ = asyncio.run(read_exporter(exporter, limits))
            refuse_other_cluster(limits.cluster_id, exporter, snapshot)
        return limits, snapshot
    if snapshot.limits is None:
        raise LimitsError(
            snapshot.limits_health.error or "the configured quotas are not known: give --bootstrap-servers"
        )
    return snapshot.limits, snapshot


def report_errors(findings: Iterable[Finding]) -> bool:
    """Print what could not be read on standard error; whether there is any."""
    failed = [each for each in findings if each.severity is FindingSeverity.ERROR]
    for finding in failed:
        advice = f"\n  {one_line(finding.advice)}" if finding.advice else ""
        typer.echo(f"quotascope: {one_line(finding.text)}{advice}", err=True)
    return bool(failed)


def warn_of_callbacks(limits: Limits | None) -> dict[str, str]:
    """The custom callback of each node that has one, each with a warning: the configured quotas do not apply there."""
    callbacks = overruling(limits) if limits else {}
    for node_id, name in callbacks.items():
        typer.echo(
            f"quotascope: node {one_line(node_id)} leaves quotas to {one_line(name)}: what follows does not apply there",
            err=True,
        )
    return callbacks
