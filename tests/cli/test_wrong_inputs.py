"""Wrong inputs: each is one message in the words of this product, with what to do, before any server is asked."""

from __future__ import annotations

import gzip
import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import ClientTimeout
from tests.cli.conftest import Run

INTERNALS = re.compile(
    r"Traceback|Errno|errno|Os \{|os error|Value error|Input should|_ssl\.c|pydantic|Error\(|Exception|object at "
    r"0x|ssl:default"
)
WRONG = (
    ("statsu", "Did you mean 'status'?"),
    ("status --exportr http://a", "--exporter"),
    ("status --top x", "expected a whole number, not 'x'"),
    ("status --exporter quotascope:9749", "an address such as http://quotascope:9749"),
    ("top --sort usd", "did you mean 'used'?"),
    ("top --type producer", "did you mean 'produce'?"),
    ("top --every 5x", "a time such as 500ms, 5s or 1m, got '5x'"),
    ("top --exporter http://{silent} --exporter-ca-file none", "the CA file none cannot be used: No such file"),
    ("top --exporter http://{silent} --exporter-ca-file text", "the CA file text cannot be used: no certificate"),
    (
        "top --exporter http://{silent} --exporter-user a --exporter-password-file none",
        "the file cannot be read: No such file",
    ),
    ("serve --port x", "expected a whole number, not 'x'"),
    ("serve --port 70000", "expected a number from 0 to 65535, not '70000'"),
    ("serve --source jolokja=http://a:1", "did you mean 'jolokia'?"),
    ("serve --source http://a:1 --idle-after x", "is not a time such as 500ms, 5s or 1m"),
    ("serve --source http://a:1 --log-level warn", "did you mean 'warning'?"),
    ("serve --source http://a:1 --detail-above x", "expected a number, not 'x'"),
    ("serve --source http://a:1 --web.config.file none", "expected a file that is there, got 'none'"),
    ("explain --bootstrap-servers {silent} --ca-file none", "expected a file that is there, got 'none'"),
    ("explain --bootstrap-servers {silent} --security-protocol SSL --ca-file text", (
        "the CA file text cannot be used: no certificate"
    )),
    ("explain --bootstrap-servers {silent} --security-protocol TLS", "expected 'PLAINTEXT'"),
    ("quotas set producer_byte_rat=5 --user a --bootstrap-servers {silent}", "did you mean 'producer_byte_rate'?"),
    ("quotas set producer_byte_rate=0 --user a --bootstrap-servers {silent}", "must be greater than 0"),
    ("quotas set connection_creation_rate=5 --user a --bootstrap-servers {silent}", "none of this entity's keys"),
    ("quotas set --measure-only request_percent --bootstrap-servers {silent}", "did you mean 'request_percentage'?"),
    ("quotas set --file none --bootstrap-servers {silent}", "none: cannot be read: No such file"),
    ("quotas set --file quotas.yaml --bootstrap-servers {silent}", "line 2: unknown key 'usr'; did you mean 'user'?"),
    ("quotas remove producer_byte_rat --user a --bootstrap-servers {silent}", "did you mean 'producer_byte_rate'?"),
    ("quotas export --format jaml --bootstrap-servers {silent}", "did you mean 'yaml'?"),
    ("quotas diff folder --bootstrap-servers {silent}", "folder: cannot be read: Is a directory"),
    ("config check empty", "empty: no source: give --source"),
    ("config check large", "large: cannot be read: it is larger than 1 MiB"),
    ("config check binary", "binary: is not UTF-8 text"),
    ("ingest text --into text", "'text' is a file: name a folder"),
    ("usage text", "'text' is a file: name a folder"),
    ("ingest-prometheus --prometheus prometheus:9090 --into s", "is not a URL such as http://prometheus:9090"),
    ("usage --prometheus http://a:1 --days nan", "expected a number from 0.05 to 3660, not 'nan'"),
    ("ingest text --into usage", "text seems to hold text of another kind: give the log of kafka.request.logger"),
    ("ingest text --into usage --topics none", "none: No such file or directory; a snapshot is JSON"),
    ("ingest kafka://a:1/t --into usage --once --every 5s", "give one of them"),
    ("ingest-prometheus none --into s", "none: there is no such file"),
    ("ingest-prometheus cut.gz --into s", "cut.gz: the compressed file is cut off: make the dump again"),
    ("ingest-prometheus empty --into s", "empty: has no sample: did promtool print an error?"),
    ("recommend usage --key producer_byte_rat", "did you mean 'producer_byte_rate'?"),
    ("recommend usage --for host", "'host' is not one of 'user'"),
    ("history drop usage --before yesterday", "'yesterday' is not a date such as 2026-09-01"),
    (
        "dashboards push --grafana-url http://127.0.0.1:1 --grafana-token-file pw",
        "http://127.0.0.1:1: Connection refused",
    ),
    (
        "dashboards push --grafana-url http://{silent} --grafana-token-file pw --grafana-ca-file none",
        "cannot use none: No such file",
    ),
    ("alerts write rules --alerts-config none", "none: cannot be read: No such file"),
)  # fmt: skip
MISUSED = (
    ("set request_percentage=1", "name the entity of the quota"),
    ("set --user a", "say what to set"),
    ("set request_percentage --user a", "is not KEY=VALUE"),
    ("set request_percentage=nan --user a", "is not KEY=VALUE"),
    ("set a=1 a=2 --user a", "is there twice"),
    ("set a=1 --user a --default-user", "exclude each other"),
    ("set a=1 --user ''", "--user is empty"),
    ("set a=1 --user a --ip ::1", "cannot be combined"),
    ("set a=1 --file f", "--file takes neither"),
    ("set --default-ip --file f", "--file takes neither"),
    ("set --file f --measure-only", "--file takes neither"),
    ("set a=1 --measure-only", "--measure-only chooses the values"),
    ("set --measure-only --default-ip", "for users and client-ids"),
    ("set a=1 --user User:alice", "principal alone: 'alice'"),
    ("set --measure-only --user User:al", "principal alone: 'al'"),
    ("remove --user a", "say which quotas"),
    ("remove a --all --user a", "say which quotas"),
    ("export --format kafka-user", "needs --strimzi-cluster"),
)
"""Of `quotascope quotas`: what cannot be meant is a wrong usage, with exit code 2."""
OF_USAGE = (
    ("status", "no source: give --exporter, --source or --discover"),
    ("status --source foo", "is not a URL"),
    ("explain --user a", "no Kafka: give --bootstrap-servers"),
    ("recommend usage --protect x", "such as p99=20ms, not 'x'"),
    ("recommend usage --floor producer_byte_rate=nan", "a floor must be above 0"),
    ("recommend usage --windows x", "NUMxSECONDS, such as 11x1"),
    ("recommend usage --share nan", "the share of time must be from 0 %"),
    ("quotas set nope=1 --user a", "none of this entity's keys"),
    ("episodes --exporter http://{silent} --quotas quotas.yaml", "has no effect: an exporter names the rules itself"),
    ("top --exporter http://{silent} --exporter-user a --exporter-password-file hunter2", "the file cannot be read"),
    ("serve --sasl-username a --sasl-password-file hunter2 --bootstrap-servers a:1", "expected a file that is there"),
    ("demo --port x", "invalid value for --port: "),
    ("alerts write", "missing argument DIR"),
    ("top --every nan", "--every: expected a time such as 500ms"),
    ("top --every -3", "--every: expected a time such as 500ms"),
    ("alerts write rules --exporter-url quotascope:9749", "is not the address of an exporter"),
    ("alerts mixin --exporter-url quotascope:9749", "is not the address of an exporter"),
    ("dashboards write build --cluster-label 9", "cannot be a label"),
    ("ingest text --into usage --log-time-zone X/Y", "invalid value for --log-time-zone: 'X/Y' is not a time zone"),
    ("dashboards push --grafana-url http://a:1 --grafana-token-file hunter2", "--grafana-token-file: the file with"),
    ("explain --user", "requires an argument (quotascope explain --help)"),
    ("quotas list --teams", "requires an argument (quotascope quotas list --help)"),
    ("top", "give --exporter, --source or --discover"),
)
"""What is wrong with the command line alone: exit code 2, and the help that has the right form."""
SILENT = (
    "status --exporter http://{silent}",
    "status --config named.yaml",
    "explain --exporter http://{silent}",
    "explain --bootstrap-servers {silent}",
    "dashboards push --grafana-url http://{silent} --grafana-token-file pw",
)


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that accepts and never answers, beside some files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    Path("text").write_text("hello\n")
    Path("pw").write_text("secret")
    Path("empty").touch()
    Path("cut.gz").write_bytes(gzip.compress(b"kafka_x 1 1700000000000\n" * 999)[:-20])
    Path("folder").mkdir()
    Path("binary").write_bytes(b"\xff\0\1\n")
    Path("large").write_bytes(b"#" * (1 << 20) + b"\n")
    Path("quotas.yaml").write_text("quotas:\n  - {usr: a, producer_byte_rate: 5}\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        Path("named.yaml").write_text(
            f"sources: [{{name: b, url: 'http://{address}/jolokia'}}]\ncollection: {{timeout_seconds: 1}}\n"
        )
        yield address


@pytest.mark.parametrize(
    ("words", "message", "codes"),
    [
        *((*wrong, {1, 2}) for wrong in WRONG),
        *((f"quotas {words} --bootstrap-servers {{silent}}", message, {2}) for words, message in MISUSED),
    ],
)
def test_a_wrong_input_is_explained(run: Run, silent: str, words: str, message: str, codes: set[int]) -> None:
    """Each wrong input has a message of its own, and the cluster is not asked, which would take ten seconds."""
    code, _, err = run(*shlex.split(words.format(silent=silent)))
    assert code in codes
    assert message in err
    assert not INTERNALS.search(err)


@pytest.mark.parametrize(("words", "message"), OF_USAGE)
def test_wrong_usage_has_one_form(run: Run, silent: str, words: str, message: str) -> None:
    """Message, command and exit code; a password that stands in the place of its file is not repeated."""
    code, _, err = run(*shlex.split(words.format(silent=silent)))
    assert code == 2
    assert message in err
    assert re.fullmatch(r"quotascope: [^\n]+ \(quotascope [a-z ]+ --help\)\n(?:  [^\n]+\n)*", err)
    assert "hunter2" not in err


@pytest.mark.parametrize(("words", "code"), [("--nix f", 1), ("", 1), ("f --json --kafka-configs", 1), ("--help", 0)])
def test_a_misused_diff_does_not_end_as_if_there_were_differences(run: Run, words: str, code: int) -> None:
    """A misused `diff` does not end with exit code 2, which means that there are differences."""
    assert run("quotas", "diff", *words.split())[0] == code


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ("empty", "/empty is empty: give the log of kafka.request.logger"),
        ("empties", "/empties/1 and 2 other files are empty: give the log of kafka.request.logger"),
        ("damaged", "/damaged: the compressed file is damaged"),
        ("none", "none: there is no such file or folder"),
    ],
)
@pytest.mark.usefixtures("silent")
def test_without_a_line_no_history_is_made(run: Run, logs: str, message: str) -> None:
    """A log without a valid line is named with its mistake, and leaves no folder that looks like a history."""
    Path("empties").mkdir()
    for number in range(1, 4):
        Path("empties", f"{number}").touch()
    Path("damaged").write_bytes(b"\x1f\x8b\xff")
    code, out, err = run("ingest", logs, "--into", "usage")
    assert code == 1
    assert out.startswith("0 lines: 0 requests added" if logs != "none" else "")
    assert message in err
    assert err.count("quotascope: ") == 1
    assert not Path("usage").exists()


@pytest.mark.parametrize("words", SILENT)
def test_a_silent_server_is_named(run: Run, silent: str, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """A server that does not answer in time is named with its host and port."""
    monkeypatch.setattr("quotascope.dashboards.grafana._TIMEOUT", ClientTimeout(total=0.3))
    monkeypatch.setattr("quotascope.exporter.api.client._TIMEOUT_SECONDS", 0.3)
    if "--bootstrap" in words:
        monkeypatch.setenv("QUOTASCOPE_KAFKA__TIMEOUT_SECONDS", "0.3")
    code, out, err = run(*shlex.split(words.format(silent=silent)))
    assert code == 1
    assert silent in out + err
    assert re.search(r"no (complete )?answer", out + err)
