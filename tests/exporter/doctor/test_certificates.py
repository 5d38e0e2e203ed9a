from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.certificates import Certificates, make_certificates

from quotascope.exporter.config import Config
from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor.certificates import certificates, judged
from quotascope.exporter.doctor.validity import pem_certificates, valid_until

DAY = 86_400.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server and a client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_the_end_is_what_the_library_reads(made: Certificates) -> None:
    """Compared with cryptography, for an authority and for a certificate of it."""
    for path in (made.ca, made.server):
        (der,) = pem_certificates(path.read_text())
        ends = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
        assert valid_until(der) == ends.timestamp()


@given(st.binary(max_size=200))
def test_anything_else_is_none(data: bytes) -> None:
    """What a server sends is a stranger's."""
    with pytest.raises(ValueError):
        valid_until(data)


def test_a_certificate_that_is_cut_is_none(made: Certificates) -> None:
    """Wherever it ends before its own validity."""
    (der,) = pem_certificates(made.server.read_text())
    for end in range(0, 60, 3):
        with pytest.raises(ValueError):
            valid_until(der[:end])


@pytest.mark.parametrize(
    ("left", "verdict", "text"),
    [
        (-3 * DAY, Verdict.BROKEN, "has ended 3 days ago"),
        (20 * DAY, Verdict.LOOK, "ends in 20 days"),
        (22 * DAY, Verdict.FINE, "valid for 22 days"),
    ],
)
def test_time_left(
    made: Certificates, left: float, verdict: Verdict, text: str
) -> None:
    """Three weeks before the end it is time to renew."""
    (der,) = pem_certificates(made.server.read_text())
    result = judged("a", der, valid_until(der) - left)
    assert result.verdict is verdict
    assert text in result.text


def test_what_is_no_certificate_is_worth_a_look() -> None:
    """It is told, not raised."""
    assert judged("a", b"x", 0.0).text == "What it shows is not a certificate."


async def test_servers_and_files_are_looked_at(
    made: Certificates, tmp_path: Path
) -> None:
    """Whether trusted or not; passwords, keys and servers that do not answer are left out."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.server, made.server_key)
    password = tmp_path / "password"
    password.write_text("pw")

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(
        hang_up, "127.0.0.1", 0, ssl=context
    ) as server:
        port = server.sockets[0].getsockname()[1]
        tls = {"cert_file": made.client, "key_file": made.client_key}
        auth = {"username": "me", "password_file": password}
        config = Config.model_validate(
            {
                "sources": [
                    {"url": f"https://127.0.0.1:{port}", "tls": tls, "basic_auth": auth}
                ],
                "kafka": {
                    "bootstrap_servers": [f"localhost:{port}", "127.0.0.1:1"],
                    "security_protocol": "SSL",
                },
            }
        )
        results = await certificates(config, ())
    subjects = [f"127.0.0.1:{port}", f"localhost:{port}", str(made.client)]
    assert [each.subject for each in results] == subjects


async def test_of_authorities_one_is_enough(made: Certificates, tmp_path: Path) -> None:
    """A bundle may hold some that have ended; in a chain none may."""
    (der,) = pem_certificates(made.ca.read_text())
    ends = datetime.fromtimestamp(valid_until(der), UTC)
    ended = der.replace(f"{ends:%y%m%d%H%M%SZ}".encode(), b"200101000000Z")
    both = tmp_path / "both.pem"
    both.write_text(ssl.DER_cert_to_PEM_cert(ended) + made.ca.read_text())
    verdicts = []
    for field in ("ca_file", "cert_file"):
        source = {"url": "http://127.0.0.1:1", "tls": {field: both}}
        config = Config.model_validate({"sources": [source]})
        (result,) = await certificates(config, ())
        verdicts.append(result.verdict)
    assert verdicts == [Verdict.LOOK, Verdict.BROKEN]
