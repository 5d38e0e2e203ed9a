from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.commands import COMMAND

from quotascope.cli import main as main_module
from quotascope.clients.errors import LibraryMissing
from quotascope.exporter.errors import ConfigError

ROOT = Path(__file__).parents[2]


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command end with this exception."""

    def app(*, prog_name: str) -> None:
        assert prog_name == "quotascope"
        raise error

    monkeypatch.setattr(main_module, "app", app)


def test_nothing_shows_the_help(run: Run) -> None:
    """Without a command, the help is shown."""
    _, out, err = run()
    assert "serve" in out + err
    assert "explain" in out + err


@pytest.mark.parametrize("arguments", [["servee"], ["serve", "--prot", "1"], ["serve", "--port", "x"]])
def test_wrong_usage_is_exit_code_2(run: Run, arguments: list[str]) -> None:
    """A typing mistake is distinguished from something that failed."""
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert "Usage" in err


def test_example_is_the_reference_configuration(run: Run, tmp_path: Path) -> None:
    """What is printed is what the documentation holds, and works as it is."""
    code, out, _ = run("config", "example")
    assert (code, out) == (0, (ROOT / "docs" / "configuration.yaml").read_text(encoding="utf-8"))
    file = tmp_path / "q.yaml"
    file.write_text(out)
    assert run("config", "check", str(file)) == (0, f"{file}: fine, 1 source\n", "")


@pytest.mark.parametrize("error", [ConfigError("q.yaml", ["line 1: no"]), LibraryMissing("kafka-python")])
def test_errors_are_one_message(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """What we know to go wrong ends with its message and exit code 1."""
    fail_with(error, monkeypatch)
    assert run() == (1, "", f"quotascope: {error}\n")


def test_defect_is_one_message_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we did not think of is no traceback either, unless a user asks for it."""
    monkeypatch.delenv("QUOTASCOPE_TRACEBACK", raising=False)
    fail_with(ZeroDivisionError("oops\x1b[2J"), monkeypatch)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert err.startswith("quotascope: unexpected ZeroDivisionError: oops\\x1b[2J\n")
    monkeypatch.setenv("QUOTASCOPE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run()


def test_an_output_that_takes_nothing() -> None:
    """A full device is reported, and is no defect; ``quotascope config example | true`` ends quietly."""
    command = (COMMAND, "config", "example")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith("quotascope: the output cannot be written: No space left on device")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_help_is_quick() -> None:
    """Neither HTTP, nor Kafka, nor the engine, nor the configuration's models are loaded for a help text."""
    code = (
        "import sys; sys.argv = ['quotascope', '--help']\n"
        "from quotascope.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'aiohttp', 'kafka', 'pydantic', 'prometheus_client', 'quotascope.metrics', 'structlog'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["serve", "status", "explain"])
def test_every_command_reaches_kafka_in_the_same_way(run: Run, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is needed to connect can be said to each of them, not to one alone."""
    monkeypatch.setenv("COLUMNS", "200")
    _, shown, _ = run(command, "--help")
    flags = "bootstrap-servers security-protocol sasl-mechanism sasl-username sasl-password-file ca-file"
    assert [flag for flag in flags.split() if f"--{flag}" not in shown] == []


@pytest.mark.parametrize(
    ("text", "code", "reported"),
    [
        (b"sources: [{name: a, url: 'http://a:1/jolokia'}]", 0, "standard input: fine, 1 source"),
        (b"prot: 1", 1, "quotascope: standard input"),
        (b"\xff", 1, "standard input: is not UTF-8 text (byte 0)"),
    ],
)
def test_configuration_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: bytes, code: int, reported: str
) -> None:
    """A pipe can be checked as well as a file, and messages say where the text came from."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    ended, out, err = run("config", "check", "-")
    assert ended == code
    assert reported in out + err


def test_files_of_targets_that_hang(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of a configuration ends although a file of targets is a pipe that nothing is written to, and reports it."""
    monkeypatch.setattr("quotascope.cli.config._LONGEST_SECONDS", 0.1)
    os.mkfifo(tmp_path / "targets.json")
    file = tmp_path / "quotascope.yaml"
    file.write_text(f"discovery: {{file_sd: {{files: ['{tmp_path}/targets.json']}}}}\n")
    code, _, err = run("config", "check", str(file))
    assert code == 0
    assert "a file is not read to its end after" in err
    os.close(os.open(tmp_path / "targets.json", os.O_WRONLY | os.O_NONBLOCK))  # lets the thread end that reads it
