"""TLS towards an agent."""

from __future__ import annotations

import ssl
from pathlib import Path


def client_context(
    *,
    ca_file: Path | None = None,
    cert_file: Path | None = None,
    key_file: Path | None = None,
    key_password: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """
    What to trust and what to present.

    Args:
        ca_file: PEM file of the authorities to trust; without it the system's.
        cert_file: PEM file with our certificate and its chain, when the agent wants one.
        key_file: PEM file with its private key, when that is not in ``cert_file``.
        key_password: Password of the private key. Without one an encrypted key is an error,
            never a question on the terminal.
        verify: Whether the agent's certificate and host name must be valid.

    Raises:
        OSError: a file cannot be read, or does not hold what it should (``ssl.SSLError``).

    """
    context = ssl.create_default_context(cafile=ca_file)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert_file is not None:
        context.load_cert_chain(cert_file, key_file, key_password or "")
    return context
