"""Commands that read an exporter behind TLS, client certificates and a password."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of
from tests.exporter.web.serving import HASH, PASSWORD, tls_section, web_file

from quotascope.exporter.app import Exporter
from quotascope.exporter.config import Config

QUOTASCOPE = Path(sys.executable).with_name("quotascope")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server and a client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def exporter(tmp_path: Path, certificates: Certificates) -> AsyncIterator[Exporter]:
    """One that asks for both."""
    section = tls_section(
        certificates, client_ca_file=str(certificates.ca), client_auth_type="RequireAndVerifyClientCert"
    )
    file = web_file(tmp_path, **section, basic_auth_users={"me": HASH})
    server = {"address": "127.0.0.1", "port": 0, "web_config_file": str(file)}
    config = Config.model_validate({"server": server})
    async with exporter_of(config, [ScriptedSource()], ScriptedLimits()) as started:
        await started.snapshot()
        yield started


async def run(*arguments: str | Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    process = await asyncio.create_subprocess_exec(
        QUOTASCOPE,
        *arguments,
        env={**os.environ, "COLUMNS": "150", **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


def access(certificates: Certificates) -> list[str | Path]:
    """What lets us in as far as TLS."""
    return [
        *("--exporter-ca-file", certificates.ca),
        *("--exporter-cert-file", certificates.client),
        *("--exporter-key-file", certificates.client_key),
    ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["top"], ["sources up 1/1", "alice"]),
        (["top", "--json"], ['"user": "alice"', '"severity": "ok"']),
        (["status"], ["broker-1", "producer_byte_rate 2", "1 quota entities"]),
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
    asked = ["--exporter", exporter.url, *access(certificates), "--exporter-user", "me"]
    if command[0] == "top":
        given = await run(*command, *asked, "--exporter-password-file", file)
    else:
        given = await run(*command, *asked, QUOTASCOPE_EXPORTER_PASSWORD=PASSWORD)
    code, output, _ = given
    assert code == 0
    assert [text for text in expected if text not in output] == []


@pytest.mark.parametrize(
    ("user", "password", "expected"),
    [
        (["--exporter-user", "me"], "wrong", "HTTP 401"),
        ([], "", "--exporter-user and --exporter-password-file"),
    ],
)
async def test_a_refusal_names_the_options(
    exporter: Exporter, certificates: Certificates, user: list[str], password: str, expected: str
) -> None:
    """One sentence, with the options that help, and without the password."""
    code, output, errors = await run(
        *("top", "--exporter", exporter.url), *access(certificates), *user, QUOTASCOPE_EXPORTER_PASSWORD=password
    )
    assert (code, output) == (1, "")
    assert expected in errors
    assert len(errors.splitlines()) == 1
    assert "wrong" not in errors.replace("wrong credentials", "")


async def test_an_authority_that_is_not_trusted(exporter: Exporter) -> None:
    """The message names the option."""
    code, _, errors = await run("top", "--exporter", exporter.url)
    assert code == 1
    assert "--exporter-ca-file" in errors
