"""The web config file, up to its checked settings."""

from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.target import Target

from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import filled
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.web.web_config import WebConfig

_SUBJECT = "fuzz.yaml"
_HASH = b"$2y$10$" + b"a" * 53


def _read(data: bytes) -> None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    document = parse_document(text, _SUBJECT, None)
    config = filled(WebConfig, document, _SUBJECT, context={"folder": Path()})
    users = config.basic_auth_users
    assert not any(":" in user for user in users)
    representation = repr(list(users.values()))
    assert not any(password.get_secret_value() in representation for password in users.values())


def _seeds() -> Iterator[bytes]:
    yield b"basic_auth_users:\n  alice: %s\n" % _HASH
    yield (
        b"tls_server_config:\n  cert_file: Makefile\n  key_file: Makefile\n  min_version: TLS13\n"
        b"  client_auth_type: NoClientCert\n"
    )
    yield (
        b"http_server_config:\n  http2: true\n  headers: {X-Frame-Options: deny}\n"
        b"rate_limit: {interval: 1s, burst: 2}\n"
    )


TARGET = Target(
    name="web_config",
    read=_read,
    refuses=(ConfigError,),
    seeds=_seeds,
    words=(
        b"tls_server_config:",
        b"basic_auth_users:",
        b"http_server_config:",
        b"rate_limit:",
        b"cipher_suites:",
        b"client_ca_file:",
        _HASH,
        b"$2b$31$",
        b"!!int ",
        b"!!float ",
        b"<<: *a",
        b"&a ",
        b"? ",
    ),
)
