"""What reads the slices of a server: attempts, divisions and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.servers import Handler, served

from quotascope.cli import past, samples
from quotascope.cli.samples import Remote
from quotascope.cli.too_large import is_too_large
from quotascope.exporter.errors import AnswerTooLong, SourceError, SourceUnreadable
from quotascope.exporter.sources.peer import Peer
from quotascope.pipeline.prometheus.past import QueryRefused
from quotascope.pipeline.prometheus.remote_read import Matchers
from quotascope.pipeline.prometheus.slices import Slice

SLICE = Slice([Matchers({"__name__": ["kafka_x"]})], 0, 3_600_000)
EMPTY = b"\x00"
"""An answer without a series, packed by snappy."""


class Reads(ThreadingHTTPServer):
    """Answers each request by the next of some statuses and texts."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str | None]] = []
        super().__init__(("127.0.0.1", 0), _Reads)


class _Reads(Handler):
    server: Reads

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.body()
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.server.answers.pop(0)
        self.answer(status, body, **({"Content_Encoding": "snappy"} if status == 200 else {}))


@contextmanager
def reading(
    monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, bytes], **config: Any
) -> Iterator[tuple[Reads, Remote]]:
    """Yield a server, and a client that reads it without a pause."""
    monkeypatch.setattr(samples, "_PAUSES_S", (0.0, 0.0, 0.0))
    with served(Reads(*answers)) as server:
        yield server, Remote(past._server_config({"url": f"http://127.0.0.1:{server.server_port}/p", **config}))


def test_a_server_that_fails_for_a_while_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is overloaded for a while is asked again."""
    with reading(monkeypatch, (503, b"overloaded"), (429, b"slowly"), (200, EMPTY)) as (server, remote):
        assert list(remote(SLICE)) == []
    assert [path for path, _ in server.asked] == ["/p/api/v1/read"] * 3


def test_attempts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses four attempts is an error with its name and reason."""
    with (
        reading(monkeypatch, *[(503, b"overloaded")] * 5) as (server, remote),
        pytest.raises(QueryRefused, match=r"127\.0\.0\.1.*HTTP 503.*overloaded"),
    ):
        list(remote(SLICE))
    assert len(server.asked) == 4


def test_a_slice_that_is_too_large_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of samples is kept by two halves."""
    too_large = (400, b"exceeded sample limit (50000000)")
    with reading(monkeypatch, too_large, (200, EMPTY), (200, EMPTY)) as (server, remote):
        assert list(remote(SLICE)) == []
    assert len(server.asked) == 3


@pytest.mark.parametrize("reason", ["the tenant exceeded the request rate limit", "too many requests"])
def test_a_limit_of_requests_is_waited_for(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """A slice is asked for again after a pause, and not in parts, which would be more requests."""
    refusal = json.dumps({"status": "error", "error": reason}).encode()
    with reading(monkeypatch, (429, refusal), (200, EMPTY)) as (server, remote):
        assert list(remote(SLICE)) == []
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Peer().late("p", 9090, 180, https=False), True),
        (Peer().unconnected("unlimited-prom", 9090, OSError("x")), False),
        (SourceUnreadable("HTTP 302: redirects to http://timeout.example/; configure the final url"), False),
        (SourceUnreadable("HTTP 429: Prometheus says: rate limit exceeded"), False),
        (SourceUnreadable("HTTP 422: Prometheus says: the query hit the max number of chunks limit"), True),
        (AnswerTooLong("the answer is longer than 64 MiB"), True),
    ],
)
def test_less_is_asked_for_where_that_helps(error: SourceError, *, expected: bool) -> None:
    """An answer that is late or too large is asked for in parts; the name of a host, or of a limit of rates, is not."""
    assert is_too_large(error) == expected


def test_a_server_without_remote_read_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without remote read is refused with the servers that have it and the alternatives."""
    with (
        reading(monkeypatch, (404, b"<html>")) as (_, remote),
        pytest.raises(QueryRefused, match=r"remote read is of Prometheus, Mimir and Cortex.*Thanos.*promtool"),
    ):
        list(remote(SLICE))


def test_a_login_goes_along_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A header from a file is sent from workers, too, and no text of the reader has it."""
    token = tmp_path / "token"
    token.write_text("Bearer sesame")
    with reading(monkeypatch, (200, EMPTY), header_files={"Authorization": str(token)}) as (server, remote):
        sent = Remote(remote.config.with_secrets())
        token.unlink()
        assert list(sent(SLICE)) == []
    assert server.asked[0][1] == "Bearer sesame"
    assert "sesame" not in f"{sent!r} {sent.config!r}"


def test_a_file_that_a_worker_does_not_have_is_named(tmp_path: Path) -> None:
    """TLS needs its files on each machine that reads, and the message says which and why."""
    authority = tmp_path / "authority.pem"
    authority.write_text("")
    remote = Remote(past._server_config({"url": "https://p:9090", "tls": {"ca_file": str(authority)}}).with_secrets())
    authority.unlink()
    with pytest.raises(QueryRefused, match=r"authority\.pem.*worker of Spark"):
        list(remote(SLICE))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("recommend --samples t --prometheus http://p:9090", "--prometheus"),
        ("usage --samples t --selector a=b", "--selector"),
        ("usage", "--samples"),
        ("episodes --samples t folder", "give one of them"),
        ("usage --samples-engine spark --prometheus http://p:9090", "--samples-engine"),
        ("usage --samples t --samples-engine x", "auto, local, spark"),
        ("usage --samples t", "no table of samples"),
        ("ingest-prometheus --into t", "--prometheus"),
        ("ingest-prometheus --into t --samples t", "--samples"),
        ("ingest-prometheus a.txt --into t --prometheus http://p:9090", "give one of them"),
        ("ingest-prometheus a.txt --into t --begin 2026-01-01", "--min-time"),
        ("ingest-prometheus a.txt --into t", "a.txt"),
    ],
)
def test_options_that_contradict_each_other_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    """Each message names the option or file that is wrong."""
    monkeypatch.chdir(tmp_path)
    code, output, errors = run(*words.split())
    assert (code, output) in {(1, ""), (2, "")}
    assert message in " ".join(errors.replace("│", " ").split())


def test_a_table_of_another_kind_is_refused(run: Run, tmp_path: Path) -> None:
    """A folder of request logs is no table of samples."""
    (tmp_path / "dump.txt").write_text('{__name__="go_info"} 1 1700000000000\n')
    code, _, errors = run("ingest-prometheus", tmp_path / "dump.txt", "--into", tmp_path / "t", "--json")
    assert code == 1
    assert "no metric of Kafka's brokers" in errors
    assert json.dumps(str(tmp_path / "t")) not in errors
