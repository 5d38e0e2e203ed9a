"""One node that a discovery found, and how its address is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from ..untrusted import shown

PLACEHOLDER: Final = re.compile(r"\{(\w+)\}", re.ASCII)
_HOST: Final = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_.-]{0,252}[0-9A-Za-z_.])?")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_WORD: Final = re.compile(r"[0-9A-Za-z_.-]{1,253}")
_LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one node's agent answers."""

    url: str
    name: str
    """The label ``source``."""
    node_id: int | None = None
    """None leaves it to the node to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one look gave."""

    targets: tuple[Target, ...]
    problem: str | None = None
    """What could not be found besides, and why."""


class Finder(Protocol):
    """
    One way of finding nodes.

    ``find`` raises ``DiscoveryError`` when nothing can be said; what was found last is kept then.
    """

    @property
    def name(self) -> str:
        """The label ``discovery``."""
        ...

    @property
    def interval_seconds(self) -> float:
        """How long to wait before looking again."""
        ...

    async def find(self) -> Found:
        """All nodes that there are now."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """
    A URL with placeholders such as ``{host}``.

    Whatever is put into it can become a host, a port or one step of a path, and nothing else: what a
    stranger writes into a file cannot reach another scheme, path or query than the configured one.
    """

    text: str

    def target(self, values: Mapping[str, str], node_id: int | None = None) -> Target:
        """The target with these values. Raises ``ValueError`` when one is missing or not what it should be."""
        for name in self.placeholders:
            _check(name, values.get(name, ""))
        url = PLACEHOLDER.sub(lambda match: values[match[1]], self.text)
        return Target(url=url, name=self._name(url), node_id=node_id)

    @property
    def placeholders(self) -> list[str]:
        """The names in braces."""
        return PLACEHOLDER.findall(self.text)

    def _name(self, url: str) -> str:
        """Host and port; the path as well where nodes differ in nothing else, as behind a proxy."""
        parts = urlsplit(url)
        if PLACEHOLDER.search(urlsplit(self.text).netloc):
            return parts.netloc
        return f"{parts.netloc}{parts.path}".rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host, in brackets when it is an IPv6 address, and maybe a port."""

    host: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


def address(text: str) -> Address:
    """``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT`` in its parts. Raises ``ValueError`` for anything else."""
    host, port = text, ""
    if not text.endswith("]") and ":" in text:
        host, _, port = text.rpartition(":")
        if not _is_port(port):
            raise ValueError(f"{shown(text)!r} has no valid port")
    if not is_host(host):
        raise ValueError(f"{shown(text)!r} is not HOST:PORT")
    return Address(host=host, port=port)


def is_host(text: str) -> bool:
    """Whether a text can be the host of a URL: a name, an IPv4 address, or an IPv6 address in brackets."""
    if text.startswith("["):
        return text.endswith("]") and bool(_IPV6.fullmatch(text[1:-1]))
    return bool(_HOST.fullmatch(text))


def in_url(host: str) -> str:
    """A host as a URL has it: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_port(text: str) -> bool:
    digits = text.isascii() and text.isdecimal()
    return digits and len(text) <= len(str(_LAST_PORT)) and 0 < int(text) <= _LAST_PORT


def _check(name: str, value: str) -> None:
    if not value:
        raise ValueError(f"there is no {name} to put into {{{name}}}")
    match name:
        case "host":
            valid = is_host(value)
        case "target":
            valid = str(address(value)) == value
        case _:
            valid = bool(_WORD.fullmatch(value)) and value not in {".", ".."}
    if not valid:
        raise ValueError(f"the {name} {shown(value)!r} cannot be part of a URL")
