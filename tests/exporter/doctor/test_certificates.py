from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.cluster.certificates import Certificates, make_certificates

from quotascope.exporter.config import Config
from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor import certificates as module
from quotascope.exporter.doctor.certificates import certificates, judged

DAY = 86_400.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server and a client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def issued(end: datetime) -> x509.Certificate:
    """A certificate of its own authority that ends then."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(end - timedelta(days=1)).not_valid_after(end)
    return builder.sign(key, SHA256())


@pytest.mark.parametrize("year", [1950, 1968, 1969, 1999, 2000, 2049, 2050, 2068])
async def test_years_of_two_digits(tmp_path: Path, year: int) -> None:
    """UTCTime has two digits for 1950 to 2049 (RFC 5280, section 4.1.2.5.1); later years have four."""
    end = datetime(year, 6, 1, tzinfo=UTC)
    file = tmp_path / "cert.pem"
    file.write_bytes(issued(end).public_bytes(Encoding.PEM))
    source = {"url": "http://127.0.0.1:1", "tls": {"cert_file": file}}
    config = Config.model_validate({"sources": [source]})
    now = datetime(2026, 6, 1, tzinfo=UTC)
    (result,) = await certificates(config, (), now.timestamp)
    days = abs((end - now).days)
    ended = f"Its certificate has ended {days} days ago."
    valid = f"Its certificate is valid for {days} days more."
    assert result.text == (ended if year < 2026 else valid)


@pytest.mark.parametrize("data", [b"", b"x", bytes(200)])
async def test_what_is_no_certificate_is_worth_a_look(
    monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """What a server shows comes from outside: it is reported, not raised."""

    async def shown(_: object) -> bytes:
        return data

    monkeypatch.setattr(module, "_certificate", shown)
    config = Config.model_validate({"sources": [{"url": "https://a"}]})
    (result,) = await certificates(config, ())
    assert result.verdict is Verdict.LOOK
    assert result.text == "What it shows is not a certificate."


@pytest.mark.parametrize(
    ("left", "verdict", "text"),
    [
        (-3 * DAY, Verdict.BROKEN, "has ended 3 days ago"),
        (20 * DAY, Verdict.LOOK, "ends in 20 days"),
        (22 * DAY, Verdict.FINE, "valid for 22 days"),
    ],
)
def test_time_left(left: float, verdict: Verdict, text: str) -> None:
    """Three weeks before the end it is time to renew."""
    result = judged("a", 1e9, 1e9 - left)
    assert result.verdict is verdict
    assert text in result.text


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
    ended = issued(datetime(2020, 1, 1, tzinfo=UTC)).public_bytes(Encoding.PEM)
    both = tmp_path / "both.pem"
    both.write_bytes(ended + made.ca.read_bytes())
    verdicts = []
    for field in ("ca_file", "cert_file"):
        source = {"url": "http://127.0.0.1:1", "tls": {field: both}}
        config = Config.model_validate({"sources": [source]})
        (result,) = await certificates(config, ())
        verdicts.append(result.verdict)
    assert verdicts == [Verdict.LOOK, Verdict.BROKEN]
