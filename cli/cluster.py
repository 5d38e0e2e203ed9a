"""Reads of commands: the configured quotas, and the usage of entities."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import typer

from quotascope.clients.errors import ClientError
from quotascope.exporter.api.client import Observed, read_exporter
from quotascope.exporter.diagnosis.catalog import Finding, FindingSeverity
from quotascope.exporter.errors import ConfigError, LimitsError
from quotascope.exporter.limits import CONNECTION_KEY, DEFAULT_IP, Limits
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.sources.peer import HttpTarget
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.kafka.entities import DEFAULT, QuotaType
from quotascope.metrics.kafka.release import ReleaseRange

if TYPE_CHECKING:
    from quotascope.clients.quota_admin import QuotaAdmin
    from quotascope.exporter.config import Config
    from quotascope.quotas import QuotaSet

_PATIENCE_SECONDS: Final = 2.0
"""Longest wait for a broker to show its release."""


@contextmanager
def admin(config: Config) -> Iterator[QuotaAdmin]:
    """Open the Admin API until the block ends. Raises ``ConfigError`` and ``ClientError``."""
    from .compose import admin_of, kafka_of

    quota_admin = admin_of(kafka_of(config))
    try:
        yield quota_admin
    finally:
        quota_admin.close()


async def observe(config: Callable[[], Config], exporter: HttpTarget | None) -> Observed:
    """
    Return a snapshot and its findings, of a running exporter or of the brokers, for which the configuration is read.

    Raises ``ConfigError``, ``ClientError`` and ``SourceError``.
    """
    if exporter is not None:
        return await read_exporter(exporter)

    from quotascope.exporter.diagnosis.findings import diagnose
    from quotascope.exporter.logs import configure_logs

    from .compose import build_collection

    settings = config()
    configure_logs(settings.log)
    async with build_collection(settings) as collection:
        snapshot = await collection.snapshot(settings.collection.timeout_seconds)
    return snapshot, diagnose(snapshot)


async def read_limits(config: Config) -> Limits:
    """Read the configured limits once. Raises ``LimitsError``, ``ConfigError`` and ``ClientError``."""
    from quotascope.exporter.limits.admin import AdminLimits

    from .compose import admin_of, kafka_of

    source = AdminLimits(admin_of(kafka_of(config)))
    try:
        return await source.read()
    finally:
        await source.close()


async def exporter_state(target: HttpTarget) -> tuple[Limits, Snapshot]:
    """
    Return the limits that a running exporter knows, and the rest of its state.

    Raises ``LimitsError`` if it knows no limits, and ``SourceError``.
    """
    snapshot, findings = await read_exporter(target)
    if snapshot.limits is not None:
        return snapshot.limits, snapshot
    reasons = (one_line(finding.text) for finding in findings if finding.check in {"kafka", "exporter"})
    reason = next(reasons, "it does not know the configured quotas")
    raise LimitsError(f"{target.url} reports no limits, give --bootstrap-servers to read them from Kafka: {reason}")


def configured_quotas(config: Config, exporter: HttpTarget | None = None) -> QuotaSet:
    """
    Return the quotas of the cluster, from Kafka or an exporter.

    Raises ``ConfigError``, ``ClientError``, ``QuotasError`` and ``ExporterError``.
    """
    return quotas_and_snapshot(config, exporter)[0]


def quotas_and_snapshot(config: Config, exporter: HttpTarget | None) -> tuple[QuotaSet, Snapshot | None]:
    """Return the quotas of the cluster, and the clients that an exporter measures; None without an exporter."""
    from quotascope.quotas import IpEntity, QuotaSet

    if exporter is not None:
        limits, snapshot = asyncio.run(exporter_state(exporter))
        quotas = limits.quotas()
        for ip, value in limits.connection_limits.items():
            address = IpEntity(DEFAULT if ip == DEFAULT_IP else ip)
            quotas[address] = {CONNECTION_KEY: value}
        return QuotaSet(quotas), snapshot
    with admin(config) as quota_admin:
        return QuotaSet.of(quota_admin.describe_quotas()), None


def usage(config: Config, exporter: HttpTarget | None) -> Snapshot | None:
    """
    Return the usage of entities, from an exporter or from the brokers; None if neither is named.

    Errors of reads are printed.
    """
    if exporter is None and not config.sources and not config.discovery.wanted:
        return None
    snapshot, findings = asyncio.run(observe(lambda: config, exporter))
    report_errors(findings)
    warn_of_callbacks(snapshot.limits)
    return snapshot


def refuse_other_cluster(cluster_id: str | None, exporter: HttpTarget, snapshot: Snapshot) -> None:
    """Raise ``ConfigError`` if an exporter reads another cluster than `cluster_id`, if both ids are known."""
    snapshot_id = snapshot.limits_health.cluster_id
    if cluster_id and snapshot_id and snapshot_id != cluster_id:
        problem = (
            f"{exporter.url} reads the Kafka cluster {one_line(snapshot_id)}, and the bootstrap servers are of "
            f"{one_line(cluster_id)}: "
            "name an exporter and bootstrap servers of the same cluster"
        )
        raise ConfigError("exporter", [problem])


def limits_and_usage(config: Config, exporter: HttpTarget | None) -> tuple[Limits, Snapshot | None]:
    """
    Return the rules and the entities under them, from the Admin API and the sources, or both from an exporter.

    Raises ``ConfigError`` if they are of different clusters.
    """
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
    """Print errors of reads on standard error; return whether there are any."""
    failed = [finding for finding in findings if finding.severity is FindingSeverity.ERROR]
    for finding in failed:
        advice = f"\n  {one_line(finding.advice)}" if finding.advice else ""
        typer.echo(f"quotascope: {one_line(finding.text)}{advice}", err=True)
    return bool(failed)


def releases_of(quota_admin: QuotaAdmin) -> Mapping[str, ReleaseRange]:
    """Return the possible releases of each broker, by node id, except brokers that show none or fail."""
    with suppress(ClientError):
        nodes = [node.node_id for node in quota_admin.describe_cluster().nodes]
        ranges = quota_admin.describe_releases(nodes, _PATIENCE_SECONDS)
        return {str(node): release for node, release in ranges.items() if isinstance(release, ReleaseRange)}
    return {}


def warn_of_unenforced(releases: Mapping[str, ReleaseRange], keys: Iterable[str]) -> None:
    """Print a warning on standard error for keys whose quotas the cluster's release stores and does not enforce."""
    from quotascope.exporter.diagnosis.releases import unenforced_text

    for key in dict.fromkeys(keys):
        kind = QuotaType.of_quota_key(key)
        reason = None if kind is None else unenforced_text(releases, kind)
        if reason is not None:
            typer.echo(f"quotascope: {key} has no effect here: {reason}", err=True)


def warn_of_callbacks(limits: Limits | None) -> dict[str, str]:
    """Return the custom callbacks of nodes, and print warnings: configured quotas do not apply there."""
    from quotascope.exporter.diagnosis.explain import overruling

    callbacks = overruling(limits) if limits else {}
    for node_id, name in callbacks.items():
        typer.echo(
            f"quotascope: node {one_line(node_id)} leaves quotas to {one_line(name)}: what follows does not apply "
            "there",
            err=True,
        )
    return callbacks
