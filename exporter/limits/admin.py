"""The configured limits as the Admin API reports them, and how to connect to it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Final

from quotascope.clients.answers import CONNECTION_RATE
from quotascope.clients.errors import AuthenticationFailed, ClientError, PermissionMissing, UnsupportedByCluster
from quotascope.clients.login import ClientCredentials, MskIam, TokenCommand, TokenFile, Tokens, TokenSource
from quotascope.clients.quota_admin import BrokerSettings, ConfiguredQuota, Entity, QuotaAdmin
from quotascope.clients.security import Connection, Kerberos, Sasl, SaslMechanism, Secret, Tls
from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity, QuotaType
from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.kafka.release import ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules

from ..config import KafkaConfig, SaslConfig, secret, tls_of, usable
from ..errors import LimitsDenied, LimitsError, LimitsUnsupported
from ..names import known_entity
from ..threads import BlockingCalls
from .model import CONNECTION_KEY, DEFAULT_IP, SETTINGS_OF, Limits, NodeSettings

_FIRST_PATIENCE_SECONDS: Final = 2.0
"""Time that the first read waits for a broker that does not answer."""


def connection_of(config: KafkaConfig) -> Connection:
    """Return the settings of a connection. Raises ``ConfigError`` when one of its files cannot be used."""
    with usable("kafka"):
        connection = Connection(
            bootstrap_servers=config.bootstrap_servers,
            protocol=config.security_protocol,
            sasl=_sasl_of(config.sasl) if config.sasl else None,
            tls=tls_of(config.tls) if config.tls else Tls(),
            timeout_seconds=config.timeout_seconds,
        )
        if config.security_protocol.uses_tls:
            connection.tls.context()
    return connection


def _sasl_of(config: SaslConfig) -> Sasl:
    """
    Return the login, with secrets from their files. No token or ticket is requested yet.

    Raises as ``secret``.
    """
    tokens: TokenSource | None = None
    if config.token_url is not None:
        client_secret = secret(config.client_secret, config.client_secret_file)
        tokens = ClientCredentials(
            url=config.token_url,
            client_id=config.client_id or "",
            client_secret=Secret(client_secret or ""),
            scope=config.scope,
            tls=Tls(ca_file=config.token_ca_file),
        )
        tokens.tls.context()
    elif config.token_file is not None:
        tokens = TokenFile(path=config.token_file)
    elif config.token_command is not None:
        words = (word.get_secret_value() for word in config.token_command)
        tokens = TokenCommand(arguments=tuple(words))
    elif config.mechanism is SaslMechanism.AWS_MSK_IAM:
        tokens = MskIam(region=config.region)
    kerberos = None
    if config.mechanism is SaslMechanism.GSSAPI:
        service = config.service_name or "kafka"
        kerberos = Kerberos(service_name=service, keytab=config.keytab)
    return Sasl(
        mechanism=config.mechanism,
        username=config.username or "",
        password=Secret(secret(config.password, config.password_file) or ""),
        tokens=Tokens(tokens) if tokens else None,
        kerberos=kerberos,
    )


def read_timeout(config: KafkaConfig) -> float:
    """
    Return the timeout of one complete read in seconds.

    Each of its few requests has a timeout of its own; this one ends a read that hangs.
    """
    return 4 * config.timeout_seconds


class AdminLimits:
    """Reads the limits of a cluster. ``clock`` gives Unix time in seconds."""

    def __init__(self, admin: QuotaAdmin, clock: Callable[[], float] = time.time) -> None:
        self._admin = admin
        self._clock = clock
        self._calls = BlockingCalls("quotascope-admin", LimitsError)
        self._cluster_id: str | None = None
        self._nodes: dict[str, NodeSettings] = {}
        """The last known settings of each broker, by id."""
        self._brokers: list[int] = []
        """Ids of the brokers at the last read."""
        self._controller: int | None = None
        """The active controller at the last read, if the cluster is in ZooKeeper mode."""
        self._releases: dict[str, ReleaseRange] = {}
        """The last known releases of each broker, by id."""
        self._patience_seconds = inf
        """Longest wait of this read for a broker that does not answer."""
        self._has_read = False

    async def read(self) -> Limits:
        """Return the limits as configured now. Raises ``LimitsError``."""
        try:
            return await self._calls.run(self._read)
        except (PermissionMissing, AuthenticationFailed) as error:
            raise LimitsDenied(str(error)) from error
        except UnsupportedByCluster as error:
            raise LimitsUnsupported(str(error)) from error
        except ClientError as error:
            raise LimitsError(str(error)) from error

    async def close(self) -> None:
        """End the connection, which may take a moment."""
        await self._calls.close(self._admin.close)

    def _read(self) -> Limits:
        """
        Return the limits as configured now, read in a thread that may block.

        Only the quotas are essential. Anything else that cannot be read is in ``Limits.missing``.
        """
        quotas = self._admin.describe_quotas()
        missing: dict[str, str] = {}
        with _recorded_in(missing, "settings of the brokers"):
            missing |= self._read_settings()
        with _recorded_in(missing, "the releases of the brokers"):
            missing |= self._read_releases()
        leader = None
        with _recorded_in(missing, "the active controller"):
            leader = self._admin.describe_quorum_leader()
        # only in ZooKeeper mode, the controller in Kafka's answer about the cluster is the active one
        if leader is None and any(release.zookeeper for release in self._releases.values()):
            leader = self._controller
        return Limits(
            rules=rules_of(quotas),
            connection_limits=connection_limits_of(quotas),
            cluster_id=self._cluster_id,
            nodes=dict(self._nodes),
            active_controller=None if leader is None else str(leader),
            releases=dict(self._releases),
            missing=missing,
            read_at=self._clock(),
        )

    def _read_settings(self) -> dict[str, str]:
        """
        Read the settings of the brokers. A broker that does not answer keeps its earlier settings.

        Return the settings that are missing, with the reasons.
        """
        cluster = self._admin.describe_cluster()
        self._cluster_id, node_ids = cluster.cluster_id, [node.node_id for node in cluster.nodes]
        self._brokers, self._controller = node_ids, cluster.controller_id
        for broker in self._nodes.keys() - set(map(str, node_ids)):
            del self._nodes[broker]
        # the first limits do not wait long for a broker that hangs; later there is time
        self._patience_seconds = inf if self._has_read else _FIRST_PATIENCE_SECONDS
        self._has_read = True
        missing: dict[str, str] = {}
        for node_id, settings in self._admin.describe_all_settings(node_ids, self._patience_seconds).items():
            name = str(node_id)
            if not isinstance(settings, ClientError):
                self._nodes[name] = settings_of(settings)
                continue
            consequence = "those known before are kept" if name in self._nodes else "unknown"
            missing[f"{SETTINGS_OF}{name}"] = f"{settings} ({consequence})"
        return missing

    def _read_releases(self) -> dict[str, str]:
        """
        Read the releases of the brokers. A broker that does not answer keeps its earlier release.

        Return the releases that are missing, with the reasons.
        """
        for broker in self._releases.keys() - set(map(str, self._brokers)):
            del self._releases[broker]
        missing: dict[str, str] = {}
        for node_id, release in self._admin.describe_releases(self._brokers, self._patience_seconds).items():
            name = str(node_id)
            if not isinstance(release, ClientError):
                self._releases[name] = release
            elif name not in self._releases:
                missing[f"the release of broker {name}"] = str(release)
        return missing


@contextlib.contextmanager
def _recorded_in(missing: dict[str, str], what: str) -> Iterator[None]:
    """Suppress a ``ClientError`` of the block, and add it to ``missing``: the reason why ``what`` is missing."""
    try:
        yield
    except ClientError as error:
        missing[what] = str(error)


def rules_of(quotas: Iterable[ConfiguredQuota]) -> Mapping[QuotaType, QuotaRules]:
    """Return the rules of each quota type; quotas of IP addresses and of keys unknown here are left out."""
    rules = {kind: QuotaRules() for kind in QuotaType}
    for quota in quotas:
        quota_type = QuotaType.of_quota_key(quota.key)
        if quota_type is not None and quota.entity.keys() <= {"user", "client-id"}:
            entity = QuotaEntity(_name(quota.entity, "user"), _name(quota.entity, "client-id"))
            rules[quota_type].set(known_entity(entity), quota.value)
    return rules


def connection_limits_of(quotas: Iterable[ConfiguredQuota]) -> Mapping[str, float]:
    """Return new connections per second by IP address; the default reads ``<default>``."""
    return {
        quota.entity["ip"] or DEFAULT_IP: quota.value
        for quota in quotas
        if quota.key == CONNECTION_KEY and "ip" in quota.entity
    }


def settings_of(settings: BrokerSettings) -> NodeSettings:
    """Return the part of a broker's settings that the exporter uses."""
    rates = settings.rates
    prefix, suffix = "listener.name.", f".{CONNECTION_RATE}"
    own_rate = rates.get(CONNECTION_RATE)
    return NodeSettings(
        request_capacity_threads=float(settings.num_io_threads + settings.num_network_threads),
        quota_samples=settings.quota_samples,
        quota_window_seconds=float(settings.quota_window_seconds),
        controller_quota_samples=settings.controller_quota_samples,
        controller_quota_window_seconds=float(settings.controller_quota_window_seconds),
        quota_callback_class=settings.client_quota_callback_class,
        connection_limit=None if own_rate is None else float(own_rate),
        listener_connection_limits={
            key.removeprefix(prefix).removesuffix(suffix): float(rate)
            for key, rate in rates.items()
            if key.startswith(prefix) and key.endswith(suffix)
        },
        replication_limits=_by_direction(ReplicationQuotaType, rates),
        replication_origins={
            kind.label: settings.origins[kind.rate_key].value
            for kind in ReplicationQuotaType
            if kind.rate_key in rates and kind.rate_key in settings.origins
        },
        remote_storage_limits=_by_direction(RLMQuotaType, rates),
    )


def _by_direction(
    kinds: Iterable[ReplicationQuotaType | RLMQuotaType], rates: Mapping[str, int]
) -> Mapping[str, float]:
    """Return the limits of some quota types by their label ``direction``, without types that have no limit."""
    return {kind.label: float(rates[kind.rate_key]) for kind in kinds if kind.rate_key in rates}


def _name(entity: Entity, entity_type: str) -> Name | None:
    """Return the user or client-id of a quota; None if its entity has none of this type."""
    if entity_type not in entity:
        return None
    name = entity[entity_type]
    return DEFAULT if name is None else name
