"""Planted secrets appear in no output; commands read an exporter behind TLS, client certificates and a password."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import commands
from tests.cli.conftest import Serve
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of
from tests.exporter.web.serving import HASH, PASSWORD, tls_section, web_file

from quotascope.exporter.app import Exporter
from quotascope.exporter.config import Config
from quotascope.exporter.config.file import ConfigDocument
from quotascope.exporter.config.load import build_config
from quotascope.exporter.errors import ConfigError

CAPTURE = "combined/throttled.jolokia2.json"


class Canaries:
    """Words that are used as secrets, and found nowhere else."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def new(self) -> str:
        self.words.append(f"canary{len(self.words):03}tweets")
        return self.words[-1]

    def file(self, folder: Path) -> str:
        word = self.new()
        (folder / f"secret-{len(self.words)}").write_text(f"{word}\n")
        return str(folder / f"secret-{len(self.words)}")

    def found_in(self, text: str) -> list[str]:
        """Return the planted secrets that a text reveals."""
        pieces = re.findall(r"(?:[A-Za-z0-9+/]{4}){4,}(?:[A-Za-z0-9+/]{2,3})?", text)
        plain = text + " ".join(base64.b64decode(piece + "===").decode(errors="ignore") for piece in pieces)
        return [word for word in self.words if word in plain]


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """The search finds a canary in clear, and one in the header of basic authentication."""
    canaries = Canaries()
    first, second = canaries.new(), canaries.new()
    third = Path(canaries.file(tmp_path)).read_text()
    hidden = base64.b64encode(f"user:{second}".encode()).decode()
    assert canaries.found_in(f"a {first}.") == [first]
    assert canaries.found_in(f"Authorization: Basic {hidden}") == [second]
    assert canaries.found_in(third) == [third.strip()]
    assert canaries.found_in("nothing") == []


def planted(folder: Path, canaries: Canaries, urls: list[str], **server: Any) -> dict[str, Any]:
    """Return a configuration with a secret in each possible place, whose last agent cannot be reached."""
    new, file = canaries.new, partial(canaries.file, folder)
    sources = [
        {
            "name": f"agent-{number}",
            "url": f"{url}?token={new()}",
            "basic_auth": {"username": "monitor", **login},
            "headers": {"X-Token": new()},
            "header_files": {"X-Other-Token": file()},
        }
        for number, (url, login) in enumerate(zip(urls, ({"password": new()}, {"password_file": file()}), strict=True))
    ]
    return {
        "sources": sources,
        "kafka": {
            "bootstrap_servers": "127.0.0.1:1",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl": {"username": "quotascope", "password": "${CANARY}"},
            "timeout_seconds": 1,
        },
        "otlp": {
            "endpoint": "http://127.0.0.1:1",
            "headers": {"Authorization": f"Bearer {new()}"},
            "header_files": {"X-Token": file()},
            "interval_seconds": 1,
        },
        "server": {"address": "127.0.0.1", "port": 0, **server},
        "collection": {"timeout_seconds": 2},
        "log": {"level": "debug"},
    }


def answer(url: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=30) as got:  # noqa: S310 - ours
            return f"{got.headers}{got.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.headers}{error.read().decode()}"


def first_match(pattern: str, lines: Iterable[str], seen: list[str]) -> str:
    """Return the group of the next line that matches; all lines are kept."""
    for line in lines:
        seen.append(line)
        if match := re.search(pattern, line):
            return match[0]
    return pytest.fail(f"no line with {pattern}: {seen}")


@pytest.mark.slow
def test_no_secret_leaves_the_process(agent: Serve, tmp_path: Path) -> None:
    """No secret is in a log at its most talkative level, a metric, a page, an error or the output of a command."""
    canaries = Canaries()
    broker = agent(CAPTURE)
    web = tmp_path / "web.yaml"
    web.write_text(yaml.safe_dump({"basic_auth_users": {"prometheus": HASH}}))
    canaries.words += [HASH, PASSWORD.replace(" ", "")]
    urls = [broker.url, "http://127.0.0.1:1/jolokia"]
    config = tmp_path / "quotascope.yaml"
    settings = planted(tmp_path, canaries, urls, web_config_file=str(web))
    config.write_text(yaml.safe_dump(settings))
    environ = {"CANARY": canaries.new()}
    login = base64.b64encode(f"prometheus:{PASSWORD}".encode()).decode()
    right = {"Authorization": f"Basic {login}"}
    wrong = {"Authorization": f"Basic {base64.b64encode(canaries.new().encode()).decode()}"}
    said: list[str] = []
    with subprocess.Popen(
        [commands.COMMAND, "serve", "--config", config],
        env={**os.environ, **environ},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            url = first_match(r"http://127\.0\.0\.1:\d+", process.stderr, said)
            first_match(r"\bready\b", process.stderr, said)
            for path in ("/metrics", "/", "/api/v1/entities", "/?sort=x", "/nope"):
                said += [answer(url + path, right), answer(url + path, wrong)]
            first_match("otlp|OTLP|push", process.stderr, said)
            settings["sources"][0]["basic_auth"]["password"] = canaries.new()
            settings["sources"][1]["headers"]["X-Token"] = [canaries.new()]
            config.write_text(yaml.safe_dump(settings))
            process.send_signal(signal.SIGHUP)
            first_match("the previous one stays in force", process.stderr, said)
            settings["sources"][1]["headers"]["X-Token"] = canaries.new()
            config.write_text(yaml.safe_dump(settings))
            process.send_signal(signal.SIGHUP)
            first_match("was read again", process.stderr, said)
            process.terminate()
            said.append(process.communicate()[1])
        finally:
            process.kill()
    text = "".join(said)
    assert 'quotascope_source_up{source="agent-0"} 1.0' in text
    assert 'quotascope_source_up{source="agent-1"} 0.0' in text
    assert canaries.found_in(text) == []
    explain = ("explain", "--user", "alice", "--client-id", "app")
    for command in (("status",), ("top",), ("quotas", "list"), ("doctor",), explain):
        done = commands.run(*command, "--config", config, **environ)
        assert done.returncode in {1, 2}
        assert "Traceback" not in done.stderr
        assert canaries.found_in(done.stdout + done.stderr) == [], command
    done = commands.run("config", "check", config, **environ)
    assert done.returncode == 0
    assert canaries.found_in(done.stdout + done.stderr) == []
    sent = [token for token in broker.authorizations if canaries.found_in(token)]
    assert sent  # they were in use all the time


def refusal(data: dict[str, Any]) -> str:
    """Return the message about a configuration, or an empty one if it is valid."""
    try:
        build_config(ConfigDocument(data=data), "file", {})
    except ConfigError as error:
        return str(error)
    return ""


def test_no_message_about_a_mistake_repeats_a_secret(tmp_path: Path) -> None:
    """No message repeats a secret, whatever is wrong with its value."""
    certificates = make_certificates(tmp_path)
    canaries = Canaries()
    urls = ["http://127.0.0.1:1/jolokia", "http://127.0.0.1:2/jolokia"]
    refused = 0
    shapes: list[Callable[[str], object]] = [
        lambda text: [text],
        lambda text: {text[:6]: text},
        lambda text: f"\x07{text}\n",
    ]
    for shape in shapes:
        settings = planted(tmp_path, canaries, urls)
        settings["sources"][0]["tls"] = {"key_password": canaries.new(), "ca_file": str(certificates.ca)}
        text = yaml.safe_dump(settings)
        for word in canaries.words:
            if word not in text:
                continue
            broken = _replaced(yaml.safe_load(text), word, shape)
            message = refusal(broken)
            refused += bool(message)
            assert canaries.found_in(message) == []
    assert refused > 10


def _replaced(value: object, word: str, shape: Callable[[str], object]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(below, word, shape) for key, below in value.items()}
    if isinstance(value, list):
        return [_replaced(below, word, shape) for below in value]
    return shape(value) if isinstance(value, str) and word in value else value


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def exporter(tmp_path: Path, certificates: Certificates) -> AsyncIterator[Exporter]:
    tls = {"client_ca_file": str(certificates.ca), "client_auth_type": "RequireAndVerifyClientCert"}
    file = web_file(tmp_path, **tls_section(certificates, **tls), basic_auth_users={"me": HASH})
    config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0, "web_config_file": str(file)}})
    async with exporter_of(config, [ScriptedSource()], ScriptedLimits()) as started:
        await started.snapshot()
        yield started


async def run(*arguments: str | Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, in a thread beside the exporter."""
    done = await asyncio.to_thread(commands.run, *arguments, COLUMNS="150", **environ)
    return done.returncode, done.stdout, done.stderr


def access(certificates: Certificates) -> list[str | Path]:
    files = {"ca": certificates.ca, "cert": certificates.client, "key": certificates.client_key}
    return [word for name, file in files.items() for word in (f"--exporter-{name}-file", file)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["top"], ["sources up 1/1", "alice"]),
        (["top", "--json"], ['"user": "alice"', '"severity": "ok"']),
        (["status"], ["broker-1", "producer_byte_rate 2", "1 quota entity"]),
        (["status", "--json"], ['"entities_total": 1', '"name": "broker-1"']),
        (["explain", "--user", "User:alice"], ["3 user alice applies, 1,000 B/s"]),
        (["explain", "--user", "alice", "--json"], ['"level": "user"']),
        (["quotas", "list"], ["user alice"]),
        (["quotas", "export"], ['user: "alice"\n    producer_byte_rate: 1000', "request_percentage: 50", (
            "ip: <default>\n    connection_creation_rate: 7"
        )]),
    ],
    ids=" ".join
)  # fmt: skip
async def test_with_everything_that_it_wants(
    exporter: Exporter, certificates: Certificates, tmp_path: Path, command: list[str], expected: list[str]
) -> None:
    """Every command with --exporter logs in with the password of a file or of the environment."""
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    words = [*command, "--exporter", exporter.url, *access(certificates), "--exporter-user", "me"]
    if command[0] == "top":
        code, output, _ = await run(*words, "--exporter-password-file", file)
    else:
        code, output, _ = await run(*words, QUOTASCOPE_EXPORTER_PASSWORD=PASSWORD)
    assert code == 0
    assert [text for text in expected if text not in output] == []


@pytest.mark.parametrize(
    ("user", "password", "expected"),
    [
        (["--exporter-user", "me"], "wrong", "HTTP 401"),
        ([], "", "--exporter-user and --exporter-password-file"),
        (None, "", "--exporter-ca-file"),
    ],
    ids=["wrong password", "no password", "unknown authority"],
)
async def test_a_refusal_names_the_options(
    exporter: Exporter, certificates: Certificates, user: list[str] | None, password: str, expected: str
) -> None:
    """A refusal is one sentence, with the options that help, and without the password."""
    login = [] if user is None else [*access(certificates), *user]
    code, output, errors = await run("top", "--exporter", exporter.url, *login, QUOTASCOPE_EXPORTER_PASSWORD=password)
    assert (code, output) == (1, "")
    assert expected in errors
    assert len(errors.splitlines()) == 1
    assert "wrong" not in errors.replace("wrong credentials", "")
