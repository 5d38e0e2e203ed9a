"""
The real brokers that tests share. All start when the first test asks for them.

`kafka` is one combined node for the whole run: a test that uses it takes its own topics and client ids, and leaves it
running. What a single module uses ends with that module: an idle node takes 2 % of a core. A test that stops a broker
starts its own cluster with `cluster.running(...)`.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import logins
from .certificates import make_certificates
from .cluster import Cluster, Layout, Plugin, running
from .quotas import Quotas
from .traffic import Traffic


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield one combined broker and controller (node 1), without an authorizer, shared by all tests."""
    with running(Layout.COMBINED, tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield the same cluster with StandardAuthorizer: only admin and the plaintext listener have any rights."""
    with running(Layout.COMBINED, tmp_path_factory.mktemp("guarded"), authorizer=True) as cluster:
        yield cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginKafka:
    """A cluster that takes tokens and tickets, with their issuer and their realm."""

    cluster: Cluster
    issuer: logins.Issuer
    issuer_ca: Path
    realm: logins.Realm


@pytest.fixture(scope="session")
def login_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginKafka]:
    """
    Yield a cluster as `guarded_kafka` whose SASL listeners take tokens of an issuer and tickets of a realm.

    `quotascope` has all rights.
    """
    folder = tmp_path_factory.mktemp("logins")
    certificates = make_certificates(folder)
    with logins.issuer(certificates) as issuer, logins.realm(folder / "realm") as realm:
        settings = {**logins.settings(issuer, realm), "super.users": "User:ANONYMOUS;User:quotascope"}
        plugin = Plugin(settings=settings, jvm=logins.jvm(issuer, realm))
        with running(Layout.COMBINED, folder / "cluster", authorizer=True, plugin=plugin) as cluster:
            yield LoginKafka(cluster=cluster, issuer=issuer, issuer_ca=certificates.ca, realm=realm)


@pytest.fixture(scope="session")
def pair_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker and controller (node 1) and a second broker (node 2), for limits on all that connects to a broker."""
    with running(Layout.PAIR, tmp_path_factory.mktemp("pair")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def split_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a broker (node 1) and a separate controller (node 100)."""
    with running(Layout.SPLIT, tmp_path_factory.mktemp("split")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def failover_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """
    Yield a broker (node 1) and three controllers (101 to 103).

    A test that stops one starts it again before it ends.
    """
    with running(Layout.FAILOVER, tmp_path_factory.mktemp("failover")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _quotas(kafka: Cluster) -> Iterator[Quotas]:
    with closing(Quotas(kafka.connection())) as quotas:
        yield quotas


@pytest.fixture
def quotas(_quotas: Quotas) -> Iterator[Quotas]:
    """
    Yield the quotas of `kafka`: `quotas.set(({"user": "alice"}, {"producer_byte_rate": 1000.0}))`.

    They are removed after the test.
    """
    yield _quotas
    _quotas.clear()


@pytest.fixture(scope="session")
def traffic(kafka: Cluster) -> Traffic:
    """Real clients of `kafka`."""
    return Traffic(kafka)
