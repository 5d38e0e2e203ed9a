"""`quotascope quotas` against a real broker, beside Kafka's own `kafka-configs.sh`."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
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

from quotascope.clients import AdminRequestFailed
from quotascope.quotas import Entity, from_admin, remove_command

pytestmark = pytest.mark.real

HOSTILE = 'it\'s "q" $(id)\n\x1b[2J*?,=é'
"""A client id that could break a shell, a terminal, a file and a list of options."""
SHAPES = (
    ("--user alice", "producer_byte_rate=1048576", "user-principal 'alice'"),
    ("--user -x --client-id 'app 1'", "consumer_byte_rate=9007199254740993", "user-principal '-x', client-id 'app 1'"),
    ("--user alice --default-client-id", "request_percentage=0.5", "user-principal 'alice', the default client-id"),
    (
        "--default-user --client-id default",
        "controller_mutation_rate=2.5",
        "the default user-principal, client-id 'default'",
    ),
    (
        "--default-user --default-client-id",
        "request_percentage=200",
        "the default user-principal, the default client-id",
    ),
    ("--default-user", "producer_byte_rate=5e6", "the default user-principal"),
    ("--client-id 'app 1'", "request_percentage=30", "client-id 'app 1'"),
    ("--default-client-id", "request_percentage=31", "the default client-id"),
    ("--ip 10.0.0.1", "connection_creation_rate=7", "ip '10.0.0.1'"),
    ("--ip localhost", "connection_creation_rate=8", "ip 'localhost'"),
    ("--default-ip", "connection_creation_rate=9", "the default ip"),
)  # fmt: skip
"""Options that name an entity, a quota, and how `kafka-configs.sh` calls the entity."""
DESCRIBED = (("users",), ("clients",), ("users", "clients"), ("ips",))
"""Entity types for `kafka-configs.sh --describe`: it lists only entities of just this shape."""


def described(cluster: Cluster) -> dict[str, dict[str, float]]:
    """Return the quotas that Kafka's own tool reports, by its words for an entity."""
    by_entity: dict[str, dict[str, float]] = {}
    for kinds in DESCRIBED:
        types = [word for kind in kinds for word in ("--entity-type", kind)]
        reported = run_tool(cluster, "kafka-configs.sh", "--describe", *types)
        for entity_text, quotas in re.findall(r"^Quota configs for (.*?) are (.*)$", reported, re.MULTILINE):
            by_entity[entity_text] = {
                key: float(value) for key, _, value in (pair.partition("=") for pair in quotas.strip().split(", "))
            }
    return by_entity


def ended(*arguments: str | Path) -> tuple[int, str, str]:
    process = run("quotas", *arguments)
    return process.returncode, process.stdout, process.stderr


def quotascope(*arguments: str | Path) -> str:
    """Return the output of a command that has to succeed."""
    code, out, err = ended(*arguments)
    assert code == 0, err
    return out


@pytest.mark.usefixtures("quotas")
def test_kafka_configs_reads_back_every_shape(kafka: Cluster) -> None:
    """
    Each shape of entity is set and read back by our command, and read by Kafka's own tool.

    These are keys, users, clients, pairs, addresses, defaults, and names that look like an option or a default.
    """
    expected = {}
    for entity, quota, entity_text in SHAPES:
        reported = quotascope("set", quota, *shlex.split(entity), "--apply", "--bootstrap-servers", kafka.admin)
        assert "applied and read back: 1 quota\n" in reported
        key, _, value = quota.partition("=")
        expected[entity_text] = {key: float(value)}
    assert described(kafka) == expected
    for entity, quota, entity_text in SHAPES[:3]:
        key = quota.partition("=")[0]
        quotascope("remove", key, *shlex.split(entity), "--apply", "--bootstrap-servers", kafka.admin)
        del expected[entity_text]
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
    servers = ("--bootstrap-servers", kafka.admin)
    file = tmp_path / "quotas.yaml"
    file.write_text(quotascope("export", *servers), encoding="utf-8")
    exported = quotascope("export", *servers, "--format", "kafka-configs")
    assert quotascope("diff", file, *servers) == ""
    hostile.clear()
    assert ended("diff", file, *servers)[0] == 2
    run_commands(exported)
    assert quotascope("diff", file, *servers) == ""
    hostile.set(({"client-id": "web"}, {"request_percentage": 5.0}))
    process = run("quotas", "diff", file, *servers, "--kafka-configs")
    assert process.returncode == 2
    assert "--delete-config request_percentage" in process.stdout
    run_commands(process.stdout)
    assert quotascope("diff", file, *servers) == ""


def run_commands(script: str) -> None:
    """Run what was printed as a script, with Kafka's tool under its name."""
    tool = shlex.join(java(CLASSES["kafka-configs.sh"]))
    bash = shutil.which("bash")
    assert bash is not None
    whole = f'set -e\nkafka-configs.sh() {{ {tool} "$@"; }}\n{script}'
    process = subprocess.run([bash, "-c", whole], capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stdout + process.stderr


NAMES = (
    HOSTILE,
    "User:erin",
    "svc%3Ateam%20a",
    "default",
    "<default>",
    " a b ",
    "line\nbreak",
    "`x`$(id)'\"\\",
    "-x",
    "--all",
    "CN=a, O=b",
    "é😀\u2028\u200b",
    "e\u0301",
    "100%",
    "n\0l",
    "n" * 10_000,
)
"""Names that a shell, a terminal or a file could take for something else."""


def test_every_rule_of_kafka_can_be_removed(kafka: Cluster, quotas: Quotas, tmp_path: Path) -> None:
    """
    The printed command removes a rule, read by a real bash.

    Of users, client-ids, pairs, defaults and addresses, with any names.
    """
    shapes: list[Callable[[str], dict[str, str | None]]] = [
        lambda name: {"client-id": name},
        lambda name: {"user": name, "client-id": None},
        lambda name: {"user": None, "client-id": name},
        lambda name: {"user": name, "client-id": name},
    ]
    defaults: list[dict[str, str | None]] = [{"user": None}, {"client-id": None}, {"user": None, "client-id": None}]
    entities = [*defaults]
    for number, name in enumerate(NAMES):
        entities += [{"user": name}, shapes[number % 4](name)]
    for entity in entities:
        quotas.set((entity, {"producer_byte_rate": 5e6, "request_percentage": 500.0}))
    addresses: list[dict[str, str | None]] = [{"ip": name} for name in (None, "10.0.0.1", "::1", "localhost")]
    for entity in addresses:
        quotas.set((entity, {"connection_creation_rate": 5_000.0}))
    servers = ("--bootstrap-servers", kafka.admin)
    rules = json.loads(quotascope("list", "--json", *servers))
    keys: dict[Entity, list[str]] = {}
    for rule in rules:
        keys.setdefault(from_admin(rule["entity"]), []).append(rule["key"])
    assert len(keys) == len(entities) + len(addresses)
    for configured, of_entity in keys.items():
        words, standard_input = read_by_bash(remove_command(configured, of_entity))
        if standard_input:
            file = tmp_path / "given.yaml"
            file.write_text(standard_input, encoding="utf-8")
            words = [str(file) if word == "-" else word for word in words]
        assert "applied and read back" in quotascope(*words[1:], "--apply", *servers)
    assert json.loads(quotascope("list", "--json", *servers)) == []


def read_by_bash(command: str) -> tuple[list[str], str]:
    """Return the words that the program of a printed command gets, and its standard input."""
    assert command.isprintable(), "it is one line, and moves no cursor"
    bash = shutil.which("bash")
    assert bash is not None
    recorded = "quotascope() { printf '%s\\0' \"$@\"; if [ ! -t 0 ]; then cat; fi; }\n"
    process = subprocess.run(
        [bash, "-c", f"{recorded}{command}"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    *words, standard_input = process.stdout.split("\0")
    return words, standard_input


@pytest.mark.parametrize("kind", ["user", "client-id"])
def test_an_empty_name_is_one_that_controllers_refuse(kafka: Cluster, quotas: Quotas, kind: str) -> None:
    """Controllers of today refuse it; a cluster that has one all the same is asked to remove it."""
    with pytest.raises(AdminRequestFailed, match=f"Empty {kind} not supported"):
        quotas.set(({kind: ""}, {"producer_byte_rate": 1.0}))
    code, _, err = ended("remove", "--all", f"--{kind}", "", "--bootstrap-servers", kafka.admin)
    assert code == 1
    assert f'{kind} "": has no quota to remove' in " ".join(err.split())


def test_a_file_is_set_and_removed_quotas_are_named(kafka: Cluster, quotas: Quotas, tmp_path: Path) -> None:
    """Several keys of one entity go as one; without --apply nothing changes."""
    file = tmp_path / "quotas.yaml"
    file.write_text(
        "quotas:\n  - {user: alice, producer_byte_rate: 1000, consumer_byte_rate: 2000, request_percentage: 30}\n"
        "  - {ip: <default>, connection_creation_rate: 500}\n"
    )
    servers = ("--bootstrap-servers", kafka.admin)
    reported = quotascope("set", "--file", file, *servers)
    assert "nothing was changed" in reported
    assert ended("diff", file, *servers)[0] == 2
    assert "read back: 4 quotas" in quotascope("set", "--file", file, *servers, "--apply")
    code, _, err = ended("diff", file, *servers)
    assert code == 0, err
    quotas.clear()


def test_who_a_rule_hits_comes_from_the_brokers_or_from_an_exporter(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """Brokers and an exporter report the same rule of the same client, and a change says that it affects it."""
    quotas.set(
        ({"user": "alice", "client-id": "list-app"}, {"producer_byte_rate": 50_000.0}),
        ({"user": None}, {"producer_byte_rate": 900_000.0}),
    )
    topic = traffic.topic()
    jolokia = ("--source", f"jolokia:1={kafka.brokers[0].agents.jolokia}")
    with in_background(lambda t: t.produce("alice", "list-app", topic, inf), cluster=kafka):
        for usage in (jolokia, ("--exporter", exporter.url)):
            eventually(lambda usage=usage: _hits_alice(_listed(kafka, *usage)))  # type: ignore[misc]
        eventually(lambda: _hits_alice(_listed(None, "--exporter", exporter.url)))
        change = "set producer_byte_rate=25000 --user alice --client-id list-app --bootstrap-servers"
        reported = quotascope(*change.split(), kafka.admin, *jolokia)
    assert re.search(r"alice / list-app +produce +.* 50\.0 kB/s +25\.0 kB/s", reported)


def test_a_rule_with_a_slip_in_its_name_is_found_and_corrected(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, tmp_path: Path
) -> None:
    """
    The client is named while it sends requests, by the doctor as well.

    The printed commands correct the rule, and nothing is found then.
    """
    quotas.set(
        ({"user": "User:bob"}, {"producer_byte_rate": 900_000.0}), ({"user": None}, {"producer_byte_rate": 800_000.0})
    )
    topic = traffic.topic()
    source = ("--source", f"jolokia:1={kafka.brokers[0].agents.jolokia}", "--bootstrap-servers", kafka.admin)
    text = (
        "`3 user User:bob` applies to no client; user bob is measured under `6 user <default>`, and differs in the "
        "type of the principal (User:): is it meant?"
    )

    def doubts() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(quotascope("list", "--json", *source))
        return [rule["misnamed"] for rule in listed if rule["misnamed"]]

    def is_found() -> None:
        assert [doubt["text"] for doubt in doubts()] == [text]

    with in_background(lambda t: t.produce("bob", "app", topic, inf), cluster=kafka):
        eventually(is_found)
        process = run("doctor", *source, "--json")
        findings = {finding["code"]: finding for finding in json.loads(process.stdout)["findings"]}
        assert findings["rule_misnamed"]["text"] == text
        assert process.returncode == 1, "not everything is in order"
        (doubt,) = doubts()
        assert doubt["commands"] == findings["rule_misnamed"]["commands"]
        for command in doubt["commands"]:
            words, _ = read_by_bash(command)
            assert "applied and read back: 1 quota" in quotascope(*words[1:], "--apply")
        assert doubts() == []
        wrong = tmp_path / "wrong.yaml"
        wrong.write_text("quotas: [{user: Bob, producer_byte_rate: 7000}, {user: default, producer_byte_rate: 7000}]")
        reported = quotascope("set", "--file", wrong, *source)
    assert "`3 user Bob` would apply to no client; user bob is measured under `3 user bob`" in reported
    assert "`3 user default` would apply to no client: this is a user with the name default" in reported


def _listed(kafka: Cluster | None, *usage: str) -> list[dict[str, Any]]:
    servers = () if kafka is None else ("--bootstrap-servers", kafka.admin)
    rules: list[dict[str, Any]] = json.loads(quotascope("list", "--json", *servers, *usage))
    return rules


def _hits_alice(rules: list[dict[str, Any]]) -> None:
    by_entity = {json.dumps(rule["entity"]): rule for rule in rules}
    rule = by_entity.get('{"user": "alice", "client-id": "list-app"}', {})
    assert rule.get("hits"), "not yet"  # `eventually` waits for assertions only
    (hit,) = rule["hits"]
    assert (hit["user"], hit["client_id"]) == ("alice", "list-app")
    assert hit["usage"] > 0
    assert rule["used"] == pytest.approx(hit["usage"] / 50_000)
    hits = by_entity['{"user": null}']["hits"]  # clients of other tests, if any
    assert "list-app" not in {hit["client_id"] for hit in hits}


def test_the_permission_to_change_is_named(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """
    Reading needs DescribeConfigs, changing AlterConfigs, which includes it.

    The message gives the command for each.
    """
    password = tmp_path / "pw"
    password.write_text(USERS["mallory"])
    login = "--security-protocol SASL_PLAINTEXT --sasl-username mallory --sasl-password-file"
    servers = ("--bootstrap-servers", guarded_kafka.sasl, *login.split(), str(password))
    change = ("set", "request_percentage=77", "--user", "zoe", "--apply", *servers)
    for operation in ("DescribeConfigs", "AlterConfigs"):
        code, out, err = ended(*change)
        assert code == 1
        assert USERS["mallory"] not in out + err
        acl = "--add --allow-principal User:mallory --operation {} --cluster"
        assert acl.format(operation) in err
        run_tool(guarded_kafka, "kafka-acls.sh", *acl.format(operation).split())
    try:
        quotascope(*change)
        remove = ("remove", "--all", "--user", "zoe", "--apply", *servers)
        assert "read back: 1 quota\n" in quotascope(*remove)
    finally:
        for operation in ("DescribeConfigs", "AlterConfigs"):
            acl = f"--remove --force --allow-principal User:mallory --operation {operation} --cluster"
            run_tool(guarded_kafka, "kafka-acls.sh", *acl.split())


def test_measure_only_measures_and_throttles_no_client(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """
    A rule of --measure-only adds usage where there was none, and no client waits. Without --apply, nothing changes.

    Seen by a user that no other test throttles: throttles stay in a broker's averages for a minute.
    """
    servers = ("--bootstrap-servers", kafka.admin)
    usage = "kafka_quota_produce_bytes_per_second"
    topic = traffic.topic()

    def not_measured() -> None:
        assert not list(exporter.page().series(usage, user="admin"))

    def measured() -> None:
        page = exporter.page()
        assert page.value(usage, user="admin", client_id="") > 0
        assert page.value("kafka_quota_produce_limit_bytes_per_second", user="admin") == 1e12
        waits = list(page.series("kafka_quota_throttle_time_seconds", user="admin"))
        assert waits
        assert [sample for sample in waits if sample.value > 0] == []

    quotas.clear()
    with in_background(lambda t: t.produce("admin", "mo-app", topic, inf), cluster=kafka):
        eventually(not_measured)
        output = quotascope("set", "--measure-only", *servers)
        assert "+ producer_byte_rate 1000000000000\n" in output
        assert json.loads(quotascope("list", "--json", *servers)) == []
        reported = quotascope("set", "--measure-only", "--apply", *servers)
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
    servers = ("--bootstrap-servers", kafka.admin)
    quotas.set(
        ({"user": None}, {"producer_byte_rate": 5e6}),
        ({"client-id": "app 1"}, {"consumer_byte_rate": 7e6}),
        ({"client-id": None}, {"request_percentage": 50.0}),
        ({"user": "alice"}, {"controller_mutation_rate": 3.0}),
    )
    pairs = ("--default-user", "--default-client-id")
    code, _, err = ended("set", "--measure-only", *pairs, "--apply", *servers)
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
    reported = quotascope("set", "--measure-only", "controller_mutation_rate", *pairs, "--apply", *servers)
    assert "read back: 1 quota\n" in reported
