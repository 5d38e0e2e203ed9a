"""Cipher suites by the names that web config files use, which are Go's and IANA's."""

from __future__ import annotations

from typing import Final

_OPENSSL: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
_OF_TLS13: Final = {
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
}


def known_suite(name: str) -> str:
    """The name, if there is such a suite; else ValueError."""
    if name not in _OPENSSL and name not in _OF_TLS13:
        raise ValueError(
            f"is no cipher suite that can be chosen; there are {', '.join((*_OPENSSL, *sorted(_OF_TLS13)))}"
        )
    return name


def openssl_names(names: tuple[str, ...]) -> str:
    """
    The suites of TLS 1.2 among them as OpenSSL wants them; empty when there are none.

    Those of TLS 1.3 are always on, as in Go.
    """
    return ":".join(_OPENSSL[name] for name in names if name in _OPENSSL)
