"""From the configuration of TLS to what a connection needs, to Kafka and to agents alike."""

from __future__ import annotations

from quotascope.clients.security import Secret, Tls

from .config import TlsConfig, secret


def tls_of(config: TlsConfig) -> Tls:
    """Whom to trust and what to show. Raises as ``secret``."""
    password = secret(config.key_password, config.key_password_file)
    return Tls(
        ca_file=config.ca_file,
        cert_file=config.cert_file,
        key_file=config.key_file,
        key_password=None if password is None else Secret(password),
        verify=config.verify,
    )
