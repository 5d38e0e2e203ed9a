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
from tests.exporter.web.serving import tls_section, web_file

from quotascope.exporter.config import Config
from quotascope.exporter.diagnosis import certificates as module
from quotascope.exporter.diagnosis.certificates import expiry_finding, secrets

DAY = 86_400.0


def issued(end: datetime) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(end - timedelta(days=1)).not_valid_after(end)
    return builder.sign(key, SHA256())


@pytest.mark.parametrize("data", [b"", b"x", bytes(200)])
async def test_what_is_no_certificate_is_worth_a_look(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """A malformed certificate of a server is a finding and raises nothing."""

    async def shown(_: object) -> bytes:
        return data

    monkeypatch.setattr(module, "_presented", shown)
    config = Config.model_validate({"sources": [{"url": "https://a"}]})
    (result,) = await module.certificates(config, ())
    assert (result.code, result.subject) == ("certificate_unreadable", "a:443")


@pytest.mark.parametrize(
    ("remaining", "code"),
    [(-3 * DAY, "certificate_ended"), (20 * DAY, "certificate_ends"), (22 * DAY, "certificate_valid")],
)
def test_time_left(remaining: float, code: str) -> None:
    """A certificate within three weeks of its end has a finding."""
    result = expiry_finding("a", 1e9, 1e9 - remaining)
    assert result.code == code
    assert f" {abs(remaining) / DAY:.0f} " in result.text


async def test_servers_and_files_are_looked_at(certificates: Certificates, tmp_path: Path) -> None:
    """Servers and files count whether trusted or not; passwords, keys and silent servers are left out."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server, certificates.server_key)
    password = tmp_path / "password"
    password.write_text("pw")

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        tls = {"cert_file": certificates.client, "key_file": certificates.client_key}
        auth = {"username": "me", "password_file": password}
        config = Config.model_validate(
            {
                "sources": [
                    {"url": f"https://127.0.0.1:{port}", "tls": tls, "basic_auth": auth},
                    {"url": f"http://127.0.0.1:{port}", "name": "plain"},
                ],
                "kafka": {"bootstrap_servers": [f"localhost:{port}", "127.0.0.1:1"], "security_protocol": "SSL"},
            }
        )
        results = await module.certificates(config, ())
    subjects = [f"127.0.0.1:{port}", f"localhost:{port}", str(certificates.client)]
    assert [finding.subject for finding in results] == subjects


async def test_of_authorities_one_is_enough(certificates: Certificates, tmp_path: Path) -> None:
    """A bundle may hold some that have ended; in a chain none may."""
    ended = issued(datetime(2020, 1, 1, tzinfo=UTC)).public_bytes(Encoding.PEM)
    both = tmp_path / "both.pem"
    both.write_bytes(ended + certificates.ca.read_bytes())
    codes = []
    for field in ("ca_file", "cert_file"):
        source = {"url": "http://127.0.0.1:1", "tls": {field: both}}
        config = Config.model_validate({"sources": [source]})
        (result,) = await module.certificates(config, ())
        codes.append(result.code)
    assert codes == ["certificate_ends", "certificate_ended"]
    tls = {"cert_file": str(certificates.server), "key_file": str(certificates.server_key), "client_ca_file": str(both)}
    file = web_file(tmp_path, tls_server_config=tls | {"client_auth_type": "RequireAndVerifyClientCert"})
    config = Config.model_validate({"server": {"web_config_file": file}})
    results = await module.certificates(config, ())
    assert {finding.subject: finding.code for finding in results}[str(both)] == "certificate_ends"


def test_secrets_that_every_user_can_read(tmp_path: Path) -> None:
    """Passwords, tokens and keys are named, each once; certificates are public."""
    files = {name: tmp_path / name for name in ("password", "token", "key", "cert")}
    for file in files.values():
        file.touch(0o644)
    files["token"].chmod(0o640)
    tls = {"cert_file": files["cert"], "key_file": files["key"]}
    auth = {"username": "me", "password_file": files["password"]}
    sources = [
        {"url": "https://a", "header_files": {"Authorization": files["token"]}, "tls": tls},
        {"url": "https://b", "basic_auth": auth},
    ]
    config = Config.model_validate({"sources": sources})
    findings = list(secrets(config))
    assert [finding.subject for finding in findings] == [str(files["key"]), str(files["password"])]
    assert findings[0].advice == f"chmod o-rwx {files['key']}"
    files["key"].unlink()
    assert len(list(secrets(config))) == 1


def test_what_the_exporter_itself_is_protected_with(tmp_path: Path) -> None:
    """The certificate of the exporter's own web file is examined, and a broken web file is a finding."""
    certificate_files = make_certificates(tmp_path)
    certificate_files.server_key.chmod(0o604)
    file = web_file(tmp_path, **tls_section(certificate_files))
    file.chmod(0o644)
    config = Config.model_validate({"server": {"web_config_file": file}})
    readable_files = [str(file), str(certificate_files.server_key)]
    assert [secret.subject for secret in secrets(config)] == readable_files
    file.write_text("nothing: known")
    assert [secret.subject for secret in secrets(config)] == readable_files[:1]
