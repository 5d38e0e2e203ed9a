"""Certificates made at test time: an authority, a server and one client, as PEM files."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

LOOPBACK = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Paths of PEM files: the authority, server and client (`CN=alice`) each as certificate and key."""

    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    server_store: Path
    """Key and certificate in one file, as Kafka wants its key store."""


class _Authority:
    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign("quotascope test authority", self.key.public_key(), _authority_extensions())

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """Return a certificate and a PKCS#8 key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(name, key.public_key(), [(LOOPBACK, False)])
        return _pem(certificate), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def _sign(
        self, name: str, key: ec.EllipticCurvePublicKey, extensions: Sequence[tuple[x509.ExtensionType, bool]]
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        day = dt.timedelta(days=1)
        issuer = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("quotascope test authority"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self.key, hashes.SHA256())


def make_certificates(folder: Path) -> Certificates:
    """Write fresh certificates, valid for a day, into a folder."""
    authority = _Authority()
    server, server_key = authority.issue("localhost")
    client, client_key = authority.issue("alice")

    def write(name: str, content: bytes) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return Certificates(
        ca=write("ca.pem", _pem(authority.certificate)),
        server=write("server.pem", server),
        server_key=write("server.key", server_key),
        client=write("client.pem", client),
        client_key=write("client.key", client_key),
        server_store=write("server-store.pem", server_key + server),
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _authority_extensions() -> list[tuple[x509.ExtensionType, bool]]:
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return [(x509.BasicConstraints(ca=True, path_length=None), True), (usage, True)]
