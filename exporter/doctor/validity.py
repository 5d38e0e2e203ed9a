"""
Until when certificates are valid, read from their DER form (RFC 5280, section 4.1).

Python's ssl tells this of verified peers and of authorities only; here it is wanted of whatever a server or a file shows.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from typing import Final

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_LONG_FORM: Final = 0x80
_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)


def valid_until(der: bytes) -> float:
    """Unix time in seconds of the end of a certificate. Raises ``ValueError`` when it is none."""
    try:
        return _ends(der)
    except IndexError:
        raise ValueError("is not a certificate") from None


def pem_certificates(text: str) -> list[bytes]:
    """The certificates in a PEM file, in DER form. Raises ``ValueError`` for what looks like one and is none."""
    return [ssl.PEM_cert_to_DER_cert(block) for block in _PEM.findall(text)]


def _ends(der: bytes) -> float:
    certificate, _ = _inside(der, 0, _SEQUENCE)
    signed, _ = _inside(der, certificate, _SEQUENCE)
    if der[signed] == _VERSION:
        signed = _after(der, signed)
    for _ in ("serialNumber", "signature", "issuer"):
        signed = _after(der, signed)
    begins, _ = _inside(der, signed, _SEQUENCE)
    return _time(der, _after(der, begins))


def _inside(der: bytes, at: int, tag: int) -> tuple[int, int]:
    """Begin and end of what an element of this tag holds."""
    if der[at] != tag:
        raise ValueError("is not a certificate")
    length, begin = der[at + 1], at + 2
    if length & _LONG_FORM:
        digits = length & ~_LONG_FORM
        length = int.from_bytes(der[begin : begin + digits])
        begin += digits
    return begin, begin + length


def _after(der: bytes, at: int) -> int:
    """Where the next element begins."""
    return _inside(der, at, der[at])[1]


def _time(der: bytes, at: int) -> float:
    formats = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
    if der[at] not in formats:
        raise ValueError("is not a certificate")
    begin, end = _inside(der, at, der[at])
    text = der[begin:end].decode("ascii", "replace")
    return datetime.strptime(text, formats[der[at]]).replace(tzinfo=UTC).timestamp()
