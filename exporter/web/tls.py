"""From a web config file to the TLS of the server."""

from __future__ import annotations

import ssl
from typing import Final

from .ciphers import openssl_names
from .model import TlsServerConfig
from .values import REQUIRE_AND_VERIFY, TLS13, VERIFY_IF_GIVEN

_VERIFICATION: Final = {
    VERIFY_IF_GIVEN: ssl.CERT_OPTIONAL,
    REQUIRE_AND_VERIFY: ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, TLS13: ssl.TLSVersion.TLSv1_3}


def server_context(config: TlsServerConfig) -> ssl.SSLContext:
    """What Python's ssl makes of it. Raises ``ValueError``, which names the key, when a file or suite cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[config.min_version]
    context.maximum_version = _VERSIONS[config.max_version]
    if not config.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.options |= ssl.OP_NO_RENEGOTIATION
    _choose_suites(context, config)
    _show_certificate(context, config)
    _verify_clients(context, config)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _choose_suites(context: ssl.SSLContext, config: TlsServerConfig) -> None:
    chosen = openssl_names(config.cipher_suites)
    if chosen:
        context.set_ciphers(chosen)
    elif config.cipher_suites:  # none that TLS 1.2 knows
        if config.max_version != TLS13:
            raise ValueError(
                "tls_server_config.cipher_suites has none for max_version TLS12"
            )
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _show_certificate(context: ssl.SSLContext, config: TlsServerConfig) -> None:
    try:
        # an empty password instead of None: OpenSSL would ask on the terminal
        context.load_cert_chain(config.cert_file, config.key_file, "")
    except OSError as error:
        raise ValueError(
            f"tls_server_config.cert_file and key_file: {config.cert_file} with {config.key_file} cannot be used"
            f" ({_reason(error)}): both must be PEM, belong together, and the key have no password"
        ) from None


def _verify_clients(context: ssl.SSLContext, config: TlsServerConfig) -> None:
    verification = _VERIFICATION.get(config.client_auth_type)
    if verification is None:
        return
    context.verify_mode = verification
    try:
        context.load_verify_locations(config.client_ca_file, cadata=config.client_ca)
    except OSError as error:
        raise ValueError(
            f"tls_server_config.client_ca_file: {config.client_ca_file or 'client_ca'} cannot be used ({_reason(error)})"
        ) from None


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "no PEM"
    return error.strerror or str(error)
