"""Output of commands for programs and for people, and their exit codes."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
import typer
import yaml
from tests.cli.conftest import Run, Serve
from tests.cli.scripted import Cluster
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, serving
from tests.exporter.examples import limits

from quotascope.alerts import Dashboard
from quotascope.cli.cluster import report_errors, warn_of_callbacks
from quotascope.cli.ingest_view import print_report
from quotascope.cli.recommend import _floor
from quotascope.cli.request_topic import _print_throttles, _summary
from quotascope.clients import AdminRequestFailed, ConfiguredQuota
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.topic_admin import TopicFound
from quotascope.exporter.diagnosis.catalog import Catalog
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.rules import jmx_exporter_rules
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.request_topic import Ensured

QUOTAS = """\
quotas:
  - {user: orders, producer_byte_rate: 1048576, request_percentage: 50}
  - {user: <default>, producer_byte_rate: 500000}
  - {user: billing, client-id: app, controller_mutation_rate: 2.5}
  - {ip: 10.0.0.1, connection_creation_rate: 20}
"""
HOSTILE = "a\n\x1b[2J"
Capture = pytest.CaptureFixture[str]
Command = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Command:
    """Runs a command beside the file ``q.yaml``: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quotascope.cli.compose.open_quota_admin", Cluster)
    monkeypatch.setattr(Cluster, "altered", {})
    (tmp_path / "q.yaml").write_text(QUOTAS, "utf-8")
    return lambda text: run(*shlex.split(text))


def test_exported_quotas_are_those_of_the_file(command: Command) -> None:
    """An exported file has the quotas of the first file, and the command prints nothing else."""
    code, out, err = command("quotas export --quotas q.yaml")
    assert (code, err) == (0, "")
    assert out.endswith("20\n")
    found, expected = (
        {json.dumps(rule, sort_keys=True) for rule in yaml.safe_load(text)["quotas"]} for text in (out, QUOTAS)
    )
    assert found == expected


@pytest.mark.parametrize("form", ["yaml", "kafka-configs"])
def test_what_no_controller_would_store_again_is_not_exported(form: str, command: Command) -> None:
    """Quotas of NaN and 0 are named on standard error; the others, one of them infinite, are exported and read back."""
    old = {
        "request_percentage": inf,
        "controller_mutation_rate": nan,
        "consumer_byte_rate": 0.0,
        "producer_byte_rate": 5.0,
    }
    quotas = tuple(ConfiguredQuota(entity={"user": "alice"}, key=key, value=value) for key, value in old.items())
    Cluster.altered["old:9092",] = quotas
    code, out, err = command(f"quotas export --bootstrap-servers old:9092 --format {form}")
    assert code == 0
    assert [line for line in err.splitlines() if "would store" in line] == [
        (
            "quotascope: left out: user alice: consumer_byte_rate must be greater than 0, not 0.0; no controller would "
            "store it again"
        ),
        (
            "quotascope: left out: user alice: 'controller_mutation_rate' is not a number; no controller would "
            "store it again"
        ),
    ]
    assert not re.search(r"\b(inf|nan)\b", out)
    assert "Infinity" in out
    Path("back.yaml").write_text(out, "utf-8")
    if form == "yaml":
        assert command("quotas export --quotas back.yaml") == (0, out, "")


def test_a_list_of_quotas_has_an_infinite_one(command: Command) -> None:
    """An infinite quota is a text in lists and changes: null would mean that there is none."""
    quota = ConfiguredQuota(entity={"user": "alice"}, key="request_percentage", value=inf)
    Cluster.altered["old:9092",] = (quota,)
    _, listed, _ = command("quotas list --bootstrap-servers old:9092 --json")
    assert [quota["value"] for quota in json.loads(listed)] == ["Infinity"]
    _, changed, _ = command("quotas remove request_percentage --user alice --bootstrap-servers old:9092 --json")
    assert [(change["old"], change["new"]) for change in json.loads(changed)["changes"]] == [("Infinity", None)]


def test_exported_commands_set_each_quota(command: Command) -> None:
    """Quotas are exported as one command for each entity, in words that Kafka's tool takes."""
    code, out, err = command("quotas export --quotas q.yaml --format kafka-configs --bootstrap-servers b:1")
    assert (code, err) == (0, "")
    assert {tuple(shlex.split(line)) for line in out.splitlines()} == {
        tuple(f"kafka-configs.sh --bootstrap-server b:1 {entity} --alter --add-config {values}".split())
        for entity, values in (
            ("--entity-type users --entity-default", "producer_byte_rate=500000"),
            ("--entity-type users --entity-name orders", "producer_byte_rate=1048576,request_percentage=50"),
            (
                "--entity-type users --entity-name billing --entity-type clients --entity-name app",
                "controller_mutation_rate=2.5",
            ),
            ("--entity-type ips --entity-name 10.0.0.1", "connection_creation_rate=20"),
        )
    }  # fmt: skip


def test_exported_manifests_are_one_for_each_user(command: Command) -> None:
    """Quotas that Strimzi's KafkaUser cannot express are named on standard error."""
    words = "quotas export --quotas q.yaml --format kafka-user --strimzi-cluster my --namespace ns"
    code, out, err = command(words)
    assert code == 0
    assert not out.endswith("\n\n")
    (manifest,) = filter(None, yaml.safe_load_all(out))
    assert manifest["metadata"] == {"name": "orders", "namespace": "ns", "labels": {"strimzi.io/cluster": "my"}}
    assert manifest["spec"]["quotas"] == {"producerByteRate": 1048576, "requestPercentage": 50}
    assert [line.startswith("quotascope: left out: ") for line in err.splitlines()] == [True] * 3


def test_difference_for_programs(command: Command) -> None:
    """
    The document has every change with the old and the new value, and the exit code is 2.

    Without a change it is 0.
    """
    words = "quotas diff q.yaml --bootstrap-servers empty:9092"
    code, out, err = command(f"{words} --json")
    assert (code, err) == (2, "")
    changes = {
        (json.dumps(change["entity"]), change["key"]): (change["old"], change["new"]) for change in json.loads(out)
    }
    assert changes == {
        ('{"user": "orders"}', "producer_byte_rate"): (None, 1048576),
        ('{"user": "orders"}', "request_percentage"): (None, 50),
        ('{"user": null}', "producer_byte_rate"): (None, 500000),
        ('{"user": "billing", "client-id": "app"}', "controller_mutation_rate"): (None, 2.5),
        ('{"ip": "10.0.0.1"}', "connection_creation_rate"): (None, 20),
    }
    assert out.count("\n  {") == 5  # indented by two
    assert out.endswith("]\n")
    code, out, err = command(f"{words} --kafka-configs")
    assert (code, len(out.splitlines()), err) == (2, 4, "")
    Path("none.yaml").write_text("quotas: []\n", "utf-8")
    assert command("quotas diff none.yaml --bootstrap-servers empty:9092 --json") == (0, "[]\n", "")


@pytest.mark.parametrize(("servers", "code"), [("b:1", 0), ("guarded:9092", 1)])
def test_status_ends_as_the_brokers_are(command: Command, agent: Serve, servers: str, code: int) -> None:
    """`status` ends with 1 where something cannot be read, and with 0 otherwise, whatever it warns of."""
    url = agent("split/throttled.1.jolokia2.json").url
    ended, out, _ = command(f"status --source {url} --bootstrap-servers {servers} --top 1")
    assert ended == code
    assert "svc:team a" in out


def test_a_refused_change_for_programs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan, and what of it is not in force; the exit code and the message are those without --json."""

    def refused(_: Cluster, __: object) -> None:
        raise AdminRequestFailed("AlterClientQuotas", 42, "no")

    monkeypatch.setattr(Cluster, "alter_quotas", refused)
    change = "quotas set producer_byte_rate=7 --user zoe --bootstrap-servers broker-1:9092 --apply"
    code, out, err = command(f"{change} --json")
    document = json.loads(out)
    change_of_zoe = {
        "entity": {"user": "zoe"},
        "key": "producer_byte_rate",
        "old": None,
        "new": 7.0,
        "overruled_by": None,
        "misnamed": None,
    }
    assert document["changes"] == [change_of_zoe]
    assert (document["applied"], document["affected"]) == (False, None)
    (missing,) = document["not_in_force"]
    assert "zoe" in missing
    ended, _, message = command(change)
    assert (ended, message) == (code, err)
    assert code == 1


@pytest.mark.parametrize(
    ("numbers", "created", "text"),
    [
        ((1, 1), True, "t was made: 1 partition, 1 replica"),
        ((2, 3), False, "t is there already: 2 partitions, 3 replicas"),
        ((12, None), True, "t was made: 12 partitions"),
        ((None, None), False, "t is there already"),
    ],
)
def test_topic_in_words(numbers: tuple[int | None, int | None], text: str, *, created: bool) -> None:
    """The summary of a topic has only numbers that are known, with nouns in singular or plural."""
    partitions, replicas = numbers
    topic = TopicFound(partitions=partitions, replication_factor=replicas)
    assert _summary("t", Ensured(topic=topic, created=created)) == text


def test_throttles_of_a_topics_creation(capsys: Capture) -> None:
    """The command prints seconds on standard error; nothing where there was none."""
    account = ThrottleAccount()
    _print_throttles(account)
    assert capsys.readouterr() == ("", "")
    for ms in (1_000, 500):
        account.client("alice", "topics", "admin").throttled(ms)
    _print_throttles(account)
    out, err = capsys.readouterr()
    assert out == ""
    assert "throttled this client for 1.5 s in all" in err
    assert err.endswith("were repeated: 0\n")


@pytest.mark.parametrize(("count", "lines"), [(0, 0), (1, 1), (10, 10), (11, 11)])
def test_files_that_were_not_read_are_named_up_to_ten(capsys: Capture, count: int, lines: int) -> None:
    """Ten files that were not read are named and more are counted. Untrusted names stay on one line."""
    report = IngestReport(read=1, kept=1, left_out={f"/f{number}\nx": "a link" for number in range(count)})
    print_report(report)
    out, err = capsys.readouterr()
    assert out.startswith("1 lines: 1 requests added, ")
    assert len(err.splitlines()) == lines
    assert all(line.endswith(" was not read: a link") for line in err.splitlines()[:10])
    assert ("11 files and folders were not read" in err) is (count > 10)


def test_broken_files_are_distinguished_from_the_counts(capsys: Capture) -> None:
    """Broken files are named on standard error, each in one line whatever its name is."""
    print_report(IngestReport(read=3, kept=2, duplicates=1, broken={"a\nb.gz": "cut off"}))
    out, err = capsys.readouterr()
    assert out.startswith("3 lines: 2 requests added, ")
    assert "b.gz" not in out
    assert err == "quotascope: a\\nb.gz: cut off\n"


@pytest.mark.parametrize(("batch", "more", "lines"), [(None, {}, 22), (3, {"batch": 3}, 1)])
def test_a_report_for_programs(capsys: Capture, batch: int | None, more: dict[str, int], lines: int) -> None:
    """A report is one document, a batch's on one line; unread files are on standard error, too."""
    report = IngestReport(
        read=9,
        kept=2,
        duplicates=1,
        quarantined_before=3,
        forwarded=1,
        quarantined=2,
        reasons=Counter({"no JSON": 2}),
        broken={"a\nb.gz": "cut off"},
        left_out={"c": "a link"},
    )
    print_report(report, batch, json=True)
    out, err = capsys.readouterr()
    assert json.loads(out) == more | {
        "lines": 9,
        "added": 2,
        "forwarded": 1,
        "known_before": 4,
        "repeated": 0,
        "quarantined": 2,
        "quarantined_by_reason": {"no JSON": 2},
        "quarantined_by_detail": [],
        "unread": [],
        "time_precision": [],
        "losses": None,
        "notes": [],
        "broken": {"a\nb.gz": "cut off"},
        "not_read": {"c": "a link"},
    }
    assert (out.count("\n"), err.count("quotascope: ")) == (lines, 2)


KEYS = "producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("producer_byte_rate=77000", (QuotaType.PRODUCE, 77_000.0)),
        ("request_percentage=1.5", (QuotaType.REQUEST, 1.5)),
        ("producer_byte_rate=a lot", "--floor takes KEY=LIMIT, not 'producer_byte_rate=a lot'"),
        ("producer_byte_rate", "--floor takes KEY=LIMIT, not 'producer_byte_rate'"),
        ("byte_rate=1", f"'byte_rate' is none of {KEYS}; did you mean 'producer_byte_rate'?"),
        ("x" * 99, f"'{'x' * 60}' is none of {KEYS}"),
    ],
)
def test_a_floor_is_a_key_and_a_limit(text: str, found: tuple[QuotaType, float] | str) -> None:
    """The keys of floors are Kafka's, and a wrong floor is refused with a readable part of its text."""
    try:
        result: object = _floor(text)
    except typer.BadParameter as refused:
        result = refused.message
    assert result == found


def test_a_floor_is_given_once_for_a_key(run: Run) -> None:
    """A floor that comes twice for a key is refused, as the last one would win silently."""
    floors = ("--floor", "producer_byte_rate=1", "--floor", "producer_byte_rate=2")
    code, _, errors = run("recommend", "usage", *floors)
    assert (code, "producer_byte_rate is there twice" in errors) == (2, True)


def test_what_an_exporter_sends_moves_no_cursor(capsys: Capture) -> None:
    """Findings and callbacks of an exporter are printed with control characters escaped."""
    warning = Catalog.NO_TRAFFIC.found(rules=HOSTILE)
    assert report_errors([Catalog.KAFKA_UNREACHABLE.found(error=HOSTILE, hint=HOSTILE), warning])
    assert not report_errors([warning])
    nodes = {HOSTILE: NodeSettings(quota_callback_class=HOSTILE)}
    assert warn_of_callbacks(replace(limits(), nodes=nodes)) == {HOSTILE: HOSTILE}
    lines = capsys.readouterr().err.splitlines()
    assert [r"a\n\x1b[2J" in line for line in lines] == [True, True, True]
    assert lines[1].startswith("  ")  # the advice, as an error may not end as a sentence does


def test_push_takes_the_token_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dashboard is put into a Grafana, for the label that was asked for, and its address printed."""
    fake = FakeGrafana()
    with serving(fake):
        monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
        code, out, _ = run("dashboards", "push", "--grafana-url", fake.url, "--cluster-label", "kafka")
    assert (code, out.splitlines()) == (0, [f"{fake.url}/d/{board.uid}" for board in Dashboard])
    assert set(fake.dashboards) == {board.uid for board in Dashboard}
    assert "{kafka=~" in str(fake.dashboards)


def test_rules_go_to_standard_output_or_a_file(tmp_path: Path, run: Run) -> None:
    """Files are written unchanged and named; if they cannot be written, the reason is shown, and no traceback."""
    rules = jmx_exporter_rules()
    assert yaml.safe_load(rules)["rules"]
    assert run("rules", "jmx-exporter")[:2] == (0, rules)
    file = tmp_path / "rules.yml"
    assert run("rules", "jmx-exporter", "--output", file) == (0, f"{file}\n", "")
    assert file.read_text("utf-8") == rules
    code, _, err = run("rules", "jmx-exporter", "--output", tmp_path / "no" / "r.yml")
    assert code == 1
    assert "No such file or directory" in err
    assert "Traceback" not in err
