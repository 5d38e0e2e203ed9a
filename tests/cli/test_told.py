"""What commands say of their work, on which stream, and how they end."""

import sys
from typing import Any

import pytest
import typer

from quotascope.cli import ingest, recommend, request_topic, status
from quotascope.cli.main import main
from quotascope.cli.quotas import export
from quotascope.cli.quotas.export import Strimzi
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.topic_admin import TopicFound
from quotascope.exporter import diagnosis
from quotascope.exporter.diagnosis import Finding, Severity
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.pipeline.ingest import Report
from quotascope.pipeline.request_topic import Ensured
from quotascope.quotas import QuotaSet

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("partitions", "replicas", "created", "told"),
    [
        (1, 1, True, "t was made: 1 partition, 1 replica"),
        (12, 3, True, "t was made: 12 partitions, 3 replicas"),
        (2, 1, False, "t is there already: 2 partitions, 1 replica"),
        (1, None, False, "t is there already: 1 partition"),
        (None, 2, False, "t is there already: 2 replicas"),
        (None, None, False, "t is there already"),
    ],
)
def test_a_topic_is_told_with_its_size(
    partitions: int | None,
    replicas: int | None,
    created: bool,  # noqa: FBT001 - a case
    told: str,
) -> None:
    """One is singular; what the cluster did not tell is left out."""
    found = TopicFound(partitions=partitions, replication_factor=replicas)
    assert request_topic._told("t", Ensured(topic=found, created=created)) == told


def test_waits_of_a_topics_creation_are_told(capsys: Captured) -> None:
    """In seconds and on standard error; nothing where there was none."""
    account = ThrottleAccount()
    request_topic._tell_waits(account)
    assert capsys.readouterr() == ("", "")
    for ms in (1_000, 500):
        account.client("alice", "topics", "admin").told(ms)
    request_topic._tell_waits(account)
    out, err = capsys.readouterr()
    assert out == ""
    assert "to wait 1.5 s in all" in err
    assert err.endswith("were repeated: 0\n")


def test_broken_files_are_told_apart_from_the_counts(capsys: Captured) -> None:
    """On standard error, each in one line whatever its name is; and the command fails."""
    report = Report(read=3, kept=2, duplicates=1, broken={"a\nb.gz": "cut off"})
    with pytest.raises(typer.Exit) as ended:
        ingest._tell(report)
    assert ended.value.exit_code == 1
    out, err = capsys.readouterr()
    assert out.startswith("3 lines: 2 requests added, ")
    assert "b.gz" not in out
    assert err.count("\n") == 1
    assert err.startswith("quotascope: ")
    assert err.endswith("b.gz: cut off\n")


def test_counts_alone_are_no_failure(capsys: Captured) -> None:
    """With nothing on standard error."""
    ingest._tell(Report(read=1, kept=1))
    assert capsys.readouterr().err == ""


def test_manifests_are_a_file_as_they_are(capsys: Captured) -> None:
    """Each line ends, and no empty one follows; what has no manifest is on standard error."""
    produce, address = {"producer_byte_rate": 1.0}, {"consumer_byte_rate": 2.0}
    quotas = QuotaSet({QuotaEntity("alice"): produce, QuotaEntity(None, "app"): address})  # fmt: skip
    export._print_manifests(quotas, Strimzi(strimzi_cluster="kafka"))
    out, err = capsys.readouterr()
    assert out.startswith("# ")
    assert "\napiVersion: kafka.strimzi.io/" in out
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    assert "producerByteRate: 1" in out
    assert err.startswith("quotascope: left out: ")
    assert "app" in err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("producer_byte_rate=77000", (QuotaType.PRODUCE, 77_000.0)),
        ("request_percentage=1.5", (QuotaType.REQUEST, 1.5)),
    ],
)
def test_a_floor_is_a_key_and_a_limit(text: str, found: tuple[Any, ...]) -> None:
    """The keys are Kafka's."""
    assert recommend._floor(text) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("producer_byte_rate=a lot", "--floor takes KEY=LIMIT, not 'producer_byte_rate=a lot'"),
        ("producer_byte_rate", "--floor takes KEY=LIMIT, not 'producer_byte_rate'"),
        ("byte_rate=1", "'byte_rate' is none of producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate"),
        ("x" * 99, f"'{'x' * 60}' is none of producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate"),
    ],
)  # fmt: skip
def test_a_floor_that_is_none_is_refused(text: str, told: str) -> None:
    """With what was given, as far as it can be read at a glance."""
    with pytest.raises(typer.BadParameter) as refused:
        recommend._floor(text)
    assert refused.value.message == told


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ((), 0),
        ((Severity.WARNING, Severity.WARNING), 0),
        ((Severity.WARNING, Severity.ERROR), 1),
    ],
)
def test_status_fails_where_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, severities: tuple[Severity, ...], code: int
) -> None:
    """Not where something is only missing."""

    async def read_once(_: object) -> Snapshot:
        return Snapshot(taken_at=0.0)

    findings = [Finding(severity=each, text="y") for each in severities]
    monkeypatch.setattr(status, "read_once", read_once)
    monkeypatch.setattr(diagnosis, "diagnose", lambda _: findings)
    monkeypatch.setattr(sys, "argv", ["quotascope", "status", "--source", "http://127.0.0.1:1/jolokia"])  # fmt: skip
    found: object = 0
    try:
        main()
    except SystemExit as ended:
        found = ended.code or 0
    assert found == code
