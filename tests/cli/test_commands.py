"""What commands print for programs and for people, and how they end."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
import yaml
from tests.cli.conftest import Serve
from tests.cli.test_transcripts import Cluster, run

from quotascope.cli.ingest import print_report
from quotascope.cli.recommend import _floor
from quotascope.cli.request_topic import _print_throttles, _summary
from quotascope.clients import AdminRequestFailed
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.topic_admin import TopicFound
from quotascope.metrics import QuotaType
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.request_topic import Ensured

QUOTAS = """\
quotas:
  - {user: orders, producer_byte_rate: 1048576, request_percentage: 50}
  - {user: <default>, producer_byte_rate: 500000}
  - {user: billing, client-id: app, controller_mutation_rate: 2.5}
  - {ip: 10.0.0.1, connection_creation_rate: 20}
"""

Command = Callable[[str], str]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command beside the file ``q.yaml``: what it prints, standard error marked with ``!``, and its exit code unless 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quotascope.cli.compose.open_quota_admin", Cluster)
    monkeypatch.setattr(Cluster, "altered", {})
    (tmp_path / "q.yaml").write_text(QUOTAS, "utf-8")
    return lambda text: run(f"quotascope {text}", monkeypatch, capsys)


def parts(said: str) -> tuple[str, list[str], int]:
    """Standard output, lines of standard error, exit code."""
    lines = said.splitlines(keepends=True)
    code = 0
    if lines and lines[-1].startswith("exit code "):
        code = int(lines.pop().removeprefix("exit code "))
    errors = [line[2:].rstrip("\n") for line in lines if line.startswith("! ")]
    return "".join(line for line in lines if not line.startswith("! ")), errors, code


def test_exported_quotas_are_those_of_the_file(command: Command) -> None:
    """A file that is exported says what the first one said, and nothing else is printed."""
    out, errors, code = parts(command("quotas export --quotas q.yaml"))
    assert (errors, code) == ([], 0)
    assert out.endswith("20\n")

    def by_entity(text: str) -> set[str]:
        return {json.dumps(rule, sort_keys=True) for rule in yaml.safe_load(text)["quotas"]}

    assert by_entity(out) == by_entity(QUOTAS)


def test_exported_commands_set_each_quota(command: Command) -> None:
    """One for each entity, whose words are those that Kafka's tool takes."""
    out, errors, code = parts(command("quotas export --quotas q.yaml --format kafka-configs --bootstrap-servers b:1"))
    assert (errors, code) == ([], 0)
    start = ["kafka-configs.sh", "--bootstrap-server", "b:1"]
    assert sorted(map(shlex.split, out.splitlines())) == sorted(
        [*start, *entity, "--alter", "--add-config", values]
        for entity, values in (
            (["--entity-type", "users", "--entity-default"], "producer_byte_rate=500000"),
            (["--entity-type", "users", "--entity-name", "orders"], "producer_byte_rate=1048576,request_percentage=50"),
            (["--entity-type", "users", "--entity-name", "billing", "--entity-type", "clients", "--entity-name", "app"], "controller_mutation_rate=2.5"),
            (["--entity-type", "ips", "--entity-name", "10.0.0.1"], "connection_creation_rate=20"),
        )
    )  # fmt: skip


def test_exported_manifests_are_one_for_each_user(command: Command) -> None:
    """What Strimzi's KafkaUser cannot hold is named on standard error."""
    out, errors, code = parts(
        command("quotas export --quotas q.yaml --format kafka-user --strimzi-cluster my --namespace ns")
    )
    assert code == 0
    assert not out.endswith("\n\n")
    (manifest,) = filter(None, yaml.safe_load_all(out))
    assert manifest["metadata"] == {"name": "orders", "namespace": "ns", "labels": {"strimzi.io/cluster": "my"}}
    assert manifest["spec"]["quotas"] == {"producerByteRate": 1048576, "requestPercentage": 50}
    assert len(errors) == 3
    assert all(each.startswith("quotascope: left out: ") for each in errors)


def test_difference_for_programs(command: Command) -> None:
    """Every change with the old and the new value, and exit code 2; the same is no change, and exit code 0."""
    asked = "quotas diff q.yaml --bootstrap-servers empty:9092"
    out, errors, code = parts(command(f"{asked} --json"))
    assert (errors, code) == ([], 2)
    changes = {(json.dumps(each["entity"]), each["key"]): (each["old"], each["new"]) for each in json.loads(out)}
    assert changes == {
        ('{"user": "orders"}', "producer_byte_rate"): (None, 1048576),
        ('{"user": "orders"}', "request_percentage"): (None, 50),
        ('{"user": null}', "producer_byte_rate"): (None, 500000),
        ('{"user": "billing", "client-id": "app"}', "controller_mutation_rate"): (None, 2.5),
        ('{"ip": "10.0.0.1"}', "connection_creation_rate"): (None, 20),
    }  # fmt: skip
    assert out.count("\n  {") == 5  # indented by two
    assert out.endswith("]\n")
    out, errors, code = parts(command(f"{asked} --kafka-configs"))
    assert (len(out.splitlines()), errors, code) == (4, [], 2)
    Path("none.yaml").write_text("quotas: []\n", "utf-8")
    same = command("quotas diff none.yaml --bootstrap-servers empty:9092 --json")
    assert parts(same) == ("[]\n", [], 0)


@pytest.mark.parametrize(("failing", "code"), [(False, 0), (True, 1)])
def test_status_ends_as_the_brokers_are(command: Command, agent: Serve, *, failing: bool, code: int) -> None:
    """1 where something cannot be read, else 0, whatever is warned of."""
    url = agent("split/throttled.1.jolokia2.json").url
    servers = "guarded:9092" if failing else "b:1"
    said = parts(command(f"status --source {url} --bootstrap-servers {servers} --top 1"))
    assert said[2] == code
    assert "svc:team a" in said[0]


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
    """Only numbers that are known, each in its number."""
    partitions, replicas = numbers
    found = TopicFound(partitions=partitions, replication_factor=replicas)
    assert _summary("t", Ensured(topic=found, created=created)) == text


def test_files_that_were_not_read_are_named_up_to_ten(capsys: pytest.CaptureFixture[str]) -> None:
    """More are counted; names of strangers stay on one line."""
    for count in (1, 10, 11):
        report = IngestReport(read=1, kept=1)
        report.left_out = {f"/f{number}\nx": "a link" for number in range(count)}
        print_report(report)
        out, errors = capsys.readouterr()
        lines = errors.splitlines()
        assert out.startswith("1 lines: 1 requests added, ")
        assert len(lines) == min(count, 10) + (count > 10)
        assert lines[0].endswith(" was not read: a link")
        assert ("11 files and folders were not read" in errors) is (count > 10)


def test_throttles_of_a_topics_creation(capsys: pytest.CaptureFixture[str]) -> None:
    """In seconds and on standard error; nothing where there was none."""
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


def test_broken_files_are_distinguished_from_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, each in one line whatever its name is."""
    report = IngestReport(read=3, kept=2, duplicates=1, broken={"a\nb.gz": "cut off"})
    print_report(report)
    out, err = capsys.readouterr()
    assert out.startswith("3 lines: 2 requests added, ")
    assert "b.gz" not in out
    assert err.count("\n") == 1
    assert err.startswith("quotascope: ")
    assert err.endswith("b.gz: cut off\n")


def test_a_refused_change_for_programs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan, and what of it is not in force; the exit code and the message are those without --json."""

    def refused(_: Cluster, __: object) -> None:
        raise AdminRequestFailed("AlterClientQuotas", 42, "no")

    monkeypatch.setattr(Cluster, "alter_quotas", refused)
    change = "quotas set producer_byte_rate=7 --user zoe --bootstrap-servers broker-1:9092 --apply"
    out, errors, code = parts(command(f"{change} --json"))
    document = json.loads(out)
    assert document["changes"] == [{"entity": {"user": "zoe"}, "key": "producer_byte_rate", "old": None, "new": 7.0}]
    assert (document["applied"], document["affected"]) == (False, None)
    (missing,) = document["not_in_force"]
    assert "zoe" in missing
    assert parts(command(change))[1:] == (errors, code)
    assert code == 1


def test_a_report_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """One document, of a topic's batch in a line; names are as they are, and what could not be read is on standard error as well."""
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
    for batch, more, lines in ((None, {}, 16), (3, {"batch": 3}, 1)):
        print_report(report, batch, json=True)
        out, err = capsys.readouterr()
        assert json.loads(out) == more | {
            "lines": 9,
            "added": 2,
            "forwarded": 1,
            "known_before": 4,
            "quarantined": 2,
            "quarantined_by_reason": {"no JSON": 2},
            "broken": {"a\nb.gz": "cut off"},
            "not_read": {"c": "a link"},
        }
        assert out.count("\n") == lines
        assert err.count("quotascope: ") == 2


def test_counts_alone_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """With nothing on standard error."""
    print_report(IngestReport(read=1, kept=1))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("producer_byte_rate=77000", (QuotaType.PRODUCE, 77_000.0)),
        ("request_percentage=1.5", (QuotaType.REQUEST, 1.5)),
    ],
)
def test_a_floor_is_a_key_and_a_limit(text: str, found: tuple[QuotaType, float]) -> None:
    """The keys are Kafka's."""
    assert _floor(text) == found


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("producer_byte_rate=a lot", "--floor takes KEY=LIMIT, not 'producer_byte_rate=a lot'"),
        ("producer_byte_rate", "--floor takes KEY=LIMIT, not 'producer_byte_rate'"),
        ("byte_rate=1", "'byte_rate' is none of producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; did you mean 'producer_byte_rate'?"),
        ("x" * 99, f"'{'x' * 60}' is none of producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate"),
    ]
)  # fmt: skip
def test_a_floor_that_is_none_is_refused(text: str, reported: str) -> None:
    """With what was given, as far as it can be read at a glance."""
    with pytest.raises(typer.BadParameter) as refused:
        _floor(text)
    assert refused.value.message == reported
