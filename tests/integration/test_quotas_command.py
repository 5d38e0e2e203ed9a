"""`quotascope quotas` against a real broker, beside Kafka's own `kafka-configs.sh`."""

import json
import re
import shlex
import shutil
import subprocess
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import java
from tests.cluster.quotas import Quotas
from tests.cluster.tools import CLASSES, run_tool
from tests.cluster.traffic import Traffic, in_background
from tests.cluster.users import USERS
from tests.commands import run
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter

pytestmark = pytest.mark.real

HOSTILE = 'it\'s "q" $(id)\n\x1b[2J*?,=é'
"""A client id that could break a shell, a terminal, a file and a list of options."""
SHAPES = (
    ("--user alice", "producer_byte_rate=1048576", "user-principal 'alice'"),
    ("--user -x --client-id 'app 1'", "consumer_byte_rate=9007199254740993", "user-principal '-x', client-id 'app 1'"),
    ("--user alice --default-client-id", "request_percentage=0.5", "user-principal 'alice', the default client-id"),
    ("--default-user --client-id '<default>'", "controller_mutation_rate=2.5", "the default user-principal, client-id '<default>'"),
    ("--default-user --default-client-id", "request_percentage=200", "the default user-principal, the default client-id"),
    ("--default-user", "producer_byte_rate=5e6", "the default user-principal"),
    ("--client-id 'app 1'", "request_percentage=30", "client-id 'app 1'"),
    ("--default-client-id", "request_percentage=31", "the default client-id"),
    ("--ip 10.0.0.1", "connection_creation_rate=7", "ip '10.0.0.1'"),
    ("--ip localhost", "connection_creation_rate=8", "ip 'localhost'"),
    ("--default-ip", "connection_creation_rate=9", "the default ip"),
)  # fmt: skip
"""Options that name an entity, a quota, and how `kafka-configs.sh` calls the entity."""
DESCRIBED = (("users",), ("clients",), ("users", "clients"), ("ips",))
"""What `kafka-configs.sh --describe` can be asked for: it lists only entities of just this shape."""


def described(cluster: Cluster) -> dict[str, dict[str, float]]:
    """What Kafka's own tool says is configured, by the words that it has for an entity."""
    found: dict[str, dict[str, float]] = {}
    for kinds in DESCRIBED:
        types = [word for kind in kinds for word in ("--entity-type", kind)]
        reported = run_tool(cluster, "kafka-configs.sh", "--describe", *types)
        for who, quotas in re.findall(r"^Quota configs for (.*?) are (.*)$", reported, re.MULTILINE):
            found[who] = {
                key: float(value) for key, _, value in (pair.partition("=") for pair in quotas.strip().split(", "))
            }
    return found


def ended(*arguments: str | Path) -> tuple[int, str, str]:
    done = run("quotas", *arguments)
    return done.returncode, done.stdout, done.stderr


def quotascope(*arguments: str | Path) -> str:
    """What a command prints; it has to succeed."""
    code, out, err = ended(*arguments)
    assert code == 0, err
    return out


@pytest.mark.usefixtures("quotas")
def test_kafka_configs_reads_back_every_shape(kafka: Cluster) -> None:
    """
    Each is set and read back by us, and then read by Kafka's own tool: all keys, users, clients, pairs, addresses, defaults.

    A name that looks like an option, and one that looks like the default, are names.
    """
    expected = {}
    for entity, quota, who in SHAPES:
        reported = quotascope("set", quota, *shlex.split(entity), "--apply", "--bootstrap-servers", kafka.admin)
        assert "applied and read back: 1 quota\n" in reported
        key, _, value = quota.partition("=")
        expected[who] = {key: float(value)}
    assert described(kafka) == expected
    for entity, quota, who in SHAPES[:3]:
        key = quota.partition("=")[0]
        quotascope("remove", key, *shlex.split(entity), "--apply", "--bootstrap-servers", kafka.admin)
        del expected[who]
    remaining = json.loads(quotascope("list", "--json", "--bootstrap-servers", kafka.admin))
    assert len(remaining) == len(expected)


@pytest.fixture
def hostile(quotas: Quotas) -> Quotas:
    """Quotas whose names have to be quoted."""
    quotas.set(
        ({"user": HOSTILE, "client-id": HOSTILE}, {"producer_byte_rate": 1024.0}),
        ({"user": "-x", "client-id": None}, {"request_percentage": 0.1}),
        ({"user": None, "client-id": "<default>"}, {"controller_mutation_rate": 2.5}),
        ({"ip": None}, {"connection_creation_rate": 20.0}),
    )
    return quotas


def test_kafka_configs_accepts_the_printed_commands(kafka: Cluster, hostile: Quotas, tmp_path: Path) -> None:
    """
    The commands of `export` and `diff`, run by a real bash, make the cluster as the file says.

    The file is what `export` wrote before; `diff` finds the same again, and its exit code says so.
    """
    at = ("--bootstrap-servers", kafka.admin)
    file = tmp_path / "quotas.yaml"
    file.write_text(quotascope("export", *at), encoding="utf-8")
    exported = quotascope("export", *at, "--format", "kafka-configs")
    assert quotascope("diff", file, *at) == ""
    hostile.clear()
    assert ended("diff", file, *at)[0] == 2
    run_commands(exported)
    assert quotascope("diff", file, *at) == ""
    hostile.set(({"client-id": "web"}, {"request_percentage": 5.0}))
    done = run("quotas", "diff", file, *at, "--kafka-configs")
    assert done.returncode == 2
    assert "--delete-config request_percentage" in done.stdout
    run_commands(done.stdout)
    assert quotascope("diff", file, *at) == ""


def run_commands(script: str) -> None:
    """Run what was printed as a script, with Kafka's tool under its name."""
    tool = shlex.join(java(CLASSES["kafka-configs.sh"]))
    bash = shutil.which("bash")
    assert bash is not None
    whole = f'set -e\nkafka-configs.sh() {{ {tool} "$@"; }}\n{script}'
    done = subprocess.run([bash, "-c", whole], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_is_set_and_removed_quotas_are_named(kafka: Cluster, quotas: Quotas, tmp_path: Path) -> None:
    """Several keys of one entity go as one; without --apply nothing changes."""
    file = tmp_path / "quotas.yaml"
    file.write_text(
        "quotas:\n  - {user: alice, producer_byte_rate: 1000, consumer_byte_rate: 2000, request_percentage: 30}\n"
        "  - {ip: <default>, connection_creation_rate: 5}\n"
    )
    at = ("--bootstrap-servers", kafka.admin)
    reported = quotascope("set", "--file", file, *at)
    assert "nothing was changed" in reported
    assert ended("diff", file, *at)[0] == 2
    assert "read back: 4 quotas" in quotascope("set", "--file", file, *at, "--apply")
    assert ended("diff", file, *at)[0] == 0
    quotas.clear()


def test_who_a_rule_hits_comes_from_the_brokers_or_from_an_exporter(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """Both ways report the same rule of the same client, and a change says that it affects it."""
    quotas.set(
        ({"user": "alice", "client-id": "list-app"}, {"producer_byte_rate": 50_000.0}),
        ({"user": None}, {"producer_byte_rate": 900_000.0}),
    )
    topic = traffic.topic()
    jolokia = ("--source", f"jolokia:1={kafka.brokers[0].agents.jolokia}")
    with in_background(lambda t: t.produce("alice", "list-app", topic, inf), of=kafka):
        for usage in (jolokia, ("--exporter", exporter.url)):
            eventually(lambda usage=usage: _hits_alice(_listed(kafka, *usage)))  # type: ignore[misc]
        eventually(lambda: _hits_alice(_listed(None, "--exporter", exporter.url)))
        change = "set producer_byte_rate=25000 --user alice --client-id list-app --bootstrap-servers"
        reported = quotascope(*change.split(), kafka.admin, *jolokia)
    assert re.search(r"alice / list-app +produce +.* 50\.0 kB/s +25\.0 kB/s", reported)


def _listed(kafka: Cluster | None, *usage: str) -> list[dict[str, Any]]:
    at = () if kafka is None else ("--bootstrap-servers", kafka.admin)
    rules: list[dict[str, Any]] = json.loads(quotascope("list", "--json", *at, *usage))
    return rules


def _hits_alice(rules: list[dict[str, Any]]) -> None:
    by_entity = {json.dumps(rule["entity"]): rule for rule in rules}
    rule = by_entity.get('{"user": "alice", "client-id": "list-app"}', {})
    assert rule.get("hits"), "not yet"  # `eventually` waits for assertions only
    (hit,) = rule["hits"]
    assert (hit["user"], hit["client_id"]) == ("alice", "list-app")
    assert hit["usage"] > 0
    assert rule["used"] == pytest.approx(hit["usage"] / 50_000)
    others = by_entity['{"user": null}']["hits"]  # clients of other tests, if any
    assert "list-app" not in {other["client_id"] for other in others}


def test_the_permission_to_change_is_named(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """Reading needs DescribeConfigs, changing AlterConfigs, which includes it; the message gives the command for each."""
    password = tmp_path / "pw"
    password.write_text(USERS["mallory"])
    login = "--security-protocol SASL_PLAINTEXT --sasl-username mallory --sasl-password-file"
    at = ("--bootstrap-servers", guarded_kafka.sasl, *login.split(), str(password))
    change = ("set", "request_percentage=77", "--user", "zoe", "--apply", *at)
    for operation in ("DescribeConfigs", "AlterConfigs"):
        code, out, err = ended(*change)
        assert code == 1
        assert USERS["mallory"] not in out + err
        acl = "--add --allow-principal User:mallory --operation {} --cluster"
        assert acl.format(operation) in err
        run_tool(guarded_kafka, "kafka-acls.sh", *acl.format(operation).split())
    try:
        quotascope(*change)
        remove = ("remove", "--all", "--user", "zoe", "--apply", *at)
        assert "read back: 1 quota\n" in quotascope(*remove)
    finally:
        for operation in ("DescribeConfigs", "AlterConfigs"):
            acl = f"--remove --force --allow-principal User:mallory --operation {operation} --cluster"
            run_tool(guarded_kafka, "kafka-acls.sh", *acl.split())


def test_measure_only_measures_and_throttles_no_client(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """
    Without a rule there is no usage; afterwards there is, and no client waits. Without --apply, nothing changes.

    Seen by a user that no other test throttles: throttles stay in a broker's averages for a minute.
    """
    at = ("--bootstrap-servers", kafka.admin)
    usage = "kafka_quota_produce_bytes_per_second"
    topic = traffic.topic()

    def not_measured() -> None:
        assert not list(exporter.page().series(usage))

    def measured() -> None:
        page = exporter.page()
        assert page.value(usage, user="admin", client_id="") > 0
        assert page.value("kafka_quota_produce_limit_bytes_per_second", user="admin") == 1e12
        waits = list(page.series("kafka_quota_throttle_time_seconds", user="admin"))
        assert waits
        assert [sample for sample in waits if sample.value > 0] == []

    quotas.clear()
    with in_background(lambda t: t.produce("admin", "mo-app", topic, inf), of=kafka):
        eventually(not_measured)
        shown = quotascope("set", "--measure-only", *at)
        assert "+ producer_byte_rate 1000000000000\n" in shown
        assert json.loads(quotascope("list", "--json", *at)) == []
        reported = quotascope("set", "--measure-only", "--apply", *at)
        assert "applied and read back: 4 quotas\n" in reported
        eventually(measured)
    assert described(kafka) == {
        "the default user-principal": {
            "producer_byte_rate": 1e12,
            "consumer_byte_rate": 1e12,
            "request_percentage": 1e6,
            "controller_mutation_rate": 1e9,
        }
    }


def test_measure_only_overrules_no_limit(kafka: Cluster, quotas: Quotas) -> None:
    """A limit that clients have is not taken from them; the message names it, and nothing is stored."""
    at = ("--bootstrap-servers", kafka.admin)
    quotas.set(
        ({"user": None}, {"producer_byte_rate": 5e6}),
        ({"client-id": "app 1"}, {"consumer_byte_rate": 7e6}),
        ({"client-id": None}, {"request_percentage": 50.0}),
        ({"user": "alice"}, {"controller_mutation_rate": 3.0}),
    )
    pairs = ("--default-user", "--default-client-id")
    code, _, err = ended("set", "--measure-only", *pairs, "--apply", *at)
    assert code == 1
    assert "producer_byte_rate would overrule the limit of user <default>," in err
    assert 'consumer_byte_rate would overrule the limit of client-id "app 1",' in err
    assert "request_percentage would overrule the limit of client-id <default>," in err
    assert "controller_mutation_rate" not in err
    assert described(kafka) == {
        "the default user-principal": {"producer_byte_rate": 5e6},
        "client-id 'app 1'": {"consumer_byte_rate": 7e6},
        "the default client-id": {"request_percentage": 50.0},
        "user-principal 'alice'": {"controller_mutation_rate": 3.0},
    }
    reported = quotascope("set", "--measure-only", "controller_mutation_rate", *pairs, "--apply", *at)
    assert "read back: 1 quota\n" in reported
