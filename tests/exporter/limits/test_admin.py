from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.exporter.examples import NOW
from tests.exporter.limits.scripted import DENIED, NEWEST, ScriptedAdmin, quota

from quotascope.clients.errors import (
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
)
from quotascope.clients.security import SaslMechanism, SecurityProtocol
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.config.section import TlsConfig, tls_of
from quotascope.exporter.errors import ConfigError, LimitsDenied, LimitsError
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.limits.admin import AdminLimits, connection_limits_of, connection_of, rules_of
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange


@pytest.fixture
def admin() -> ScriptedAdmin:
    return ScriptedAdmin()


@pytest.fixture
def source(admin: ScriptedAdmin) -> AdminLimits:
    return AdminLimits(admin, clock=lambda: NOW)


async def test_everything_is_read(source: AdminLimits, admin: ScriptedAdmin) -> None:
    """
    The limits have quotas, settings of each broker, the cluster's id, and who leads.

    A broker that left says nothing about the cluster any more.
    """
    limits = await source.read()
    assert dict(limits.rules[QuotaType.PRODUCE]) == {QuotaEntity("alice"): 1.0}
    settings = NodeSettings(
        request_capacity_threads=11.0, controller_quota_samples=5, controller_quota_window_seconds=2.0
    )
    assert limits.nodes == {"1": settings, "2": settings}
    assert (limits.active_controller, limits.missing, limits.read_at) == ("100", {}, NOW)
    assert limits.cluster_id == admin.describe_cluster().cluster_id
    admin.brokers = [2]
    assert set((await source.read()).nodes) == {"2"}


async def test_limits_beside_the_client_quotas_are_read(source: AdminLimits, admin: ScriptedAdmin) -> None:
    """Limits of each broker are read by listener and by direction."""
    admin.rates = {
        "leader.replication.throttled.rate": 3,
        "replica.alter.log.dirs.io.max.bytes.per.second": 0,
        "remote.log.manager.fetch.max.bytes.per.second": 5,
        "max.connection.creation.rate": 77,
        "listener.name.sasl.max.connection.creation.rate": 50,
    }
    settings = (await source.read()).nodes["2"]
    assert settings.replication_limits == {"leader": 3.0, "alter_log_dirs": 0.0}
    assert settings.remote_storage_limits == {"fetch": 5.0}
    assert (settings.connection_limit, settings.listener_connection_limits) == (77.0, {"sasl": 50.0})


def test_entities_of_all_eight_shapes() -> None:
    """A null name is the default, which a client literally called ``<default>`` is not."""
    rules = rules_of(
        [
            quota(1, user="u", client_id="c"),
            quota(2, user="u", client_id=None),
            quota(3, user="u"),
            quota(4, user=None, client_id="c"),
            quota(5, user=None, client_id=None),
            quota(6, user=None),
            quota(7, client_id="<default>"),
            quota(8, client_id=None),
        ]
    )
    assert dict(rules[QuotaType.PRODUCE]) == {
        QuotaEntity("u", "c"): 1,
        QuotaEntity("u", DEFAULT): 2,
        QuotaEntity("u"): 3,
        QuotaEntity(DEFAULT, "c"): 4,
        QuotaEntity(DEFAULT, DEFAULT): 5,
        QuotaEntity(DEFAULT): 6,
        QuotaEntity(None, "<default>"): 7,
        QuotaEntity(None, DEFAULT): 8,
    }


def test_each_key_goes_to_its_quota_type() -> None:
    """
    Each key of four kinds of client quota and of connections by address has its quota type.

    A key of a newer Kafka is left out.
    """
    quotas = [
        quota(1, "consumer_byte_rate", user="u"),
        quota(2, "request_percentage", user="u"),
        quota(3, "controller_mutation_rate", user="u"),
        quota(4, "new_in_kafka_5", user="u"),
        quota(5, "producer_byte_rate", group="g"),
        quota(6, "connection_creation_rate", ip="10.0.0.1"),
        quota(7, "connection_creation_rate", ip=None),
    ]
    bounds_by_type = {kind: list(bounds.values()) for kind, bounds in rules_of(quotas).items()}
    assert bounds_by_type == dict(zip(QuotaType, ([], [1], [2], [3]), strict=True))
    assert connection_limits_of(quotas) == {"10.0.0.1": 6, "<default>": 7}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DENIED, LimitsDenied),
        (AuthenticationFailed("me", "PLAIN", "no"), LimitsDenied),
        (AdminUnreachable(["a:1"], "refused"), LimitsError),
        (AdminTimeout("DescribeClientQuotas", 3), LimitsError),
    ],
)
async def test_without_quotas_there_are_no_limits(
    source: AdminLimits, admin: ScriptedAdmin, error: ClientError, expected: type[LimitsError]
) -> None:
    """The reason is passed on in the words of the client, permissions distinguished."""
    admin.errors["quotas"] = error
    with pytest.raises(expected) as caught:
        await source.read()
    assert str(caught.value) == str(error)
    assert type(caught.value) is expected


@pytest.mark.parametrize("denied", [True, False])
async def test_limits_are_read_without_a_leader(source: AdminLimits, admin: ScriptedAdmin, *, denied: bool) -> None:
    """A missing permission costs the leader only; a cluster with ZooKeeper has none that could be read."""
    admin.leader = None
    admin.errors = {"leader": DENIED} if denied else {}
    limits = await source.read()
    assert limits.active_controller is None
    assert limits.missing == ({"the active controller": str(DENIED)} if denied else {})


async def test_broker_that_is_down_keeps_its_last_settings(source: AdminLimits, admin: ScriptedAdmin) -> None:
    """Settings rarely change: those known from before stay, and the failure is reported."""
    await source.read()
    admin.errors["settings 2"] = AdminTimeout("DescribeConfigs", 3)
    limits = await source.read()
    assert set(limits.nodes) == {"1", "2"}
    assert limits.missing == {
        "settings of broker 2": "DescribeConfigs: no answer within 3 s (those known before are kept)"
    }


async def test_a_broker_that_hangs_leaves_the_others(admin: ScriptedAdmin) -> None:
    """A broker that hangs makes only its own settings unknown, and does not delay the first limits."""
    for hanging, answering in ((1, "2"), (2, "1")):
        admin.errors = {f"settings {hanging}": AdminTimeout("DescribeConfigs", 2)}
        fresh = AdminLimits(admin, clock=lambda: NOW)
        limits = await fresh.read()
        assert set(limits.nodes) == {answering}
        assert limits.missing == {f"settings of broker {hanging}": "DescribeConfigs: no answer within 2 s (unknown)"}
    await fresh.read()
    assert admin.patience[-2] < 3
    assert admin.patience[-1] > 30


async def test_close_ends_the_connection(source: AdminLimits, admin: ScriptedAdmin) -> None:
    """Closing the limits' source closes its connection."""
    await source.close()
    assert admin.closed


def kafka(**keys: Any) -> KafkaConfig:
    settings = {"bootstrap_servers": "a:9092,b:9092", **keys}
    config = Config.model_validate({"kafka": settings}).kafka
    assert config is not None
    return config


def test_settings_are_passed_on(tmp_path: Path) -> None:
    """A mounted secret is passed on without the line end that editors add, and shown nowhere."""
    plain = connection_of(kafka(timeout_seconds=3))
    assert (plain.bootstrap_servers, plain.timeout_seconds) == (("a:9092", "b:9092"), 3)
    assert (plain.protocol, plain.sasl) == (SecurityProtocol.PLAINTEXT, None)
    file = tmp_path / "pw"
    file.write_text("s3cret \n")
    sasl = {"mechanism": "SCRAM-SHA-256", "username": "me", "password_file": file}
    login = connection_of(kafka(security_protocol="SASL_PLAINTEXT", sasl=sasl))
    assert login.sasl is not None
    assert (login.sasl.mechanism, login.sasl.password.reveal()) == (SaslMechanism.SCRAM_SHA_256, "s3cret ")
    assert "s3cret" not in repr(login)
    tls = connection_of(kafka(security_protocol="SSL", tls={"verify": False})).tls
    assert (tls.verify, tls.key_password) == (False, None)
    tls = tls_of(TlsConfig(cert_file=file, key_password_file=file))
    assert tls.key_password is not None
    assert (tls.verify, tls.key_password.reveal()) == (True, "s3cret ")


@pytest.mark.parametrize(
    ("sasl", "credential"),
    [
        (
            {
                "mechanism": "OAUTHBEARER",
                "token_url": "https://sso:1/t?a=b",
                "client_id": "me",
                "client_secret": "s3cret",
            },
            "the token of the token endpoint https://sso:1/t",
        ),
        ({"mechanism": "OAUTHBEARER", "token_file": "/run/token"}, "the token of the token file /run/token"),
        (
            {"mechanism": "OAUTHBEARER", "token_command": "'/opt/a b' --key s3cret"},
            "the token of the token command /opt/a b",
        ),
        (
            {"mechanism": "OAUTHBEARER", "token_command": ["/opt/a b", "s3cret"]},
            "the token of the token command /opt/a b",
        ),
        ({"mechanism": "AWS_MSK_IAM", "region": "eu-west-1"}, "the token of AWS IAM"),
        ({"mechanism": "GSSAPI", "service_name": "k"}, "the Kerberos ticket"),
    ]
)  # fmt: skip
def test_a_login_without_a_password(sasl: dict[str, Any], credential: str) -> None:
    """Each source of tokens and tickets is passed on without being asked, and no secret is shown."""
    login = connection_of(kafka(security_protocol="SASL_SSL", sasl=sasl))
    assert login.sasl is not None
    assert login.sasl.credential == credential
    assert "s3cret" not in credential + repr(login)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"tls": {"ca_file": "broken"}}, r"kafka: .*broken"),
        # an encrypted key is opened with its password; here there is no certificate at all
        ({"tls": {"cert_file": "empty", "key_password": "pw"}}, r"client certificate .*empty"),
        ({"sasl": {"username": "me", "password_file": "broken"}}, r"kafka: .*broken is not UTF-8 text"),
        ({"sasl": {"username": "me", "password_file": "gone"}}, "kafka: the file cannot be read: No such file"),
    ],
)
def test_files_that_cannot_be_used_are_reported(section: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A wrong CA file, a missing certificate and an unreadable secret are named: each is a message."""
    files = {name: tmp_path / name for name in ("broken", "empty", "gone")}
    for name, file in files.items():
        file.write_bytes(b"hunter2\xff" if name == "broken" else b"")
    ((part, keys),) = section.items()
    protocol = "SSL" if part == "tls" else "SASL_PLAINTEXT"
    config = kafka(security_protocol=protocol, **{part: {key: files.get(text, text) for key, text in keys.items()}})
    files["gone"].unlink()
    with pytest.raises(ConfigError, match=message):
        connection_of(config)


async def test_releases_are_of_each_broker(source: AdminLimits, admin: ScriptedAdmin) -> None:
    """Releases are known by broker: one without an answer keeps its release, and one that left is forgotten."""
    older = ReleaseRange(oldest=KafkaRelease(3, 9), newest=KafkaRelease(3, 9))
    admin.releases = {1: older}
    assert (await source.read()).releases == {"1": older, "2": NEWEST}
    admin.errors["release 1"] = AdminTimeout("ApiVersions", 2.0)
    again = await source.read()
    assert (again.releases, again.missing) == ({"1": older, "2": NEWEST}, {})
    admin.brokers = [2, 3]
    admin.errors["release 3"] = AdminTimeout("ApiVersions", 2.0)
    later = await source.read()
    assert later.releases == {"2": NEWEST}
    assert later.missing == {"the release of broker 3": "ApiVersions: no answer within 2 s"}
