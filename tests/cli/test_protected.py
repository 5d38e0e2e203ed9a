"""Commands that read an exporter behind TLS, client certificates and a password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import commands
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of
from tests.exporter.web.serving import HASH, PASSWORD, tls_section, web_file

from quotascope.exporter.app import Exporter
from quotascope.exporter.config import Config


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server and a client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def exporter(tmp_path: Path, certificates: Certificates) -> AsyncIterator[Exporter]:
    """One that asks for both."""
    known = {"client_ca_file": str(certificates.ca), "client_auth_type": "RequireAndVerifyClientCert"}
    file = web_file(tmp_path, **tls_section(certificates, **known), basic_auth_users={"me": HASH})
    config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0, "web_config_file": str(file)}})
    async with exporter_of(config, [ScriptedSource()], ScriptedLimits()) as started:
        await started.snapshot()
        yield started


async def run(*arguments: str | Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, in a thread beside the exporter."""
    done = await asyncio.to_thread(commands.run, *arguments, COLUMNS="150", **environ)
    return done.returncode, done.stdout, done.stderr


def access(certificates: Certificates) -> list[str | Path]:
    """What lets us in as far as TLS."""
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
        (["quotas", "export"], ['user: "alice"\n    producer_byte_rate: 1000', "request_percentage: 50", "ip: <default>\n    connection_creation_rate: 7"]),
    ],
    ids=" ".join
)  # fmt: skip
async def test_with_everything_that_it_wants(
    exporter: Exporter, certificates: Certificates, tmp_path: Path, command: list[str], expected: list[str]
) -> None:
    """Every command that takes --exporter reads it with the same options; the password in a file, or in the environment."""
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    asked = [*command, "--exporter", exporter.url, *access(certificates), "--exporter-user", "me"]
    if command[0] == "top":
        code, output, _ = await run(*asked, "--exporter-password-file", file)
    else:
        code, output, _ = await run(*asked, QUOTASCOPE_EXPORTER_PASSWORD=PASSWORD)
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
    """One sentence, with the options that help, and without the password."""
    more = [] if user is None else [*access(certificates), *user]
    code, output, errors = await run("top", "--exporter", exporter.url, *more, QUOTASCOPE_EXPORTER_PASSWORD=password)
    assert (code, output) == (1, "")
    assert expected in errors
    assert len(errors.splitlines()) == 1
    assert "wrong" not in errors.replace("wrong credentials", "")
