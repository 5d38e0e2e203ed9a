"""Whose certificate it is that a client showed."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from typing import Any, Final

_KINDS: Final = {"DNS", "email", "IP Address", "URI"}


def is_allowed(transport: asyncio.BaseTransport, allowed: tuple[str, ...]) -> bool:
    """
    Whether the client may go on after the handshake.

    It may when any certificate will do, when it showed none (then none was required), or when one of the subject
    alternative names of the one that it showed is allowed.
    """
    if not allowed:
        return True
    certificate = transport.get_extra_info("peercert")
    return not certificate or bool(alternative_names(certificate) & set(allowed))


def alternative_names(certificate: Mapping[str, Any]) -> set[str]:
    """The DNS names, e-mail and IP addresses and URIs of a certificate as Python's ssl gives it."""
    return {
        _plain(kind, name)
        for kind, name in certificate.get("subjectAltName", ())
        if kind in _KINDS
    }


def _plain(kind: str, name: str) -> str:
    if kind != "IP Address":
        return name
    try:
        return str(ipaddress.ip_address(name.strip()))
    except ValueError:
        return name
