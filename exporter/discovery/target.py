"""The node that a discovery found: how its address is checked and made, and the source that reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from ..config import FoundSourceConfig, SourceConfig
from ..sources.source import Source
from ..untrusted import shown

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}", re.ASCII)
_HOST: Final = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_.-]{0,252}[0-9A-Za-z_.])?")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_WORD: Final = re.compile(r"[0-9A-Za-z_.-]{1,253}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTarget:
    """The address of one node's agent."""

    url: str
    name: str
    """The label ``source``."""
    node_id: int | None = None
    """Id of the node; None if the node is to report it."""


class FoundSource(Protocol):
    """The source of a node that has no address of its own. Two that are equal read the same node in the same way."""

    @property
    def label(self) -> str:
        """The label ``source``."""
        ...

    def open(self) -> Source:
        """Return the source, which connects with its first read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNodes:
    """The result of one look."""

    targets: tuple[NodeTarget, ...]
    sources: tuple[FoundSource, ...] = ()
    """The nodes that are read where they were found."""
    problem: str | None = None
    """The nodes that could not be found, and the reason."""


class Finder(Protocol):
    """
    One way of finding nodes.

    ``find`` raises ``DiscoveryError`` when it can find none at all; those found last are kept then.
    """

    @property
    def name(self) -> str:
        """The label ``discovery``."""
        ...

    @property
    def interval_seconds(self) -> float:
        """The time to wait before looking again."""
        ...

    async def find(self) -> FoundNodes:
        """Return all nodes that there are now."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


def target_of(template: str, values: Mapping[str, str], node_id: int | None = None) -> NodeTarget:
    """
    Return the target at the URL of a template whose placeholders, such as ``{host}``, are filled with values.

    A value can become a host, a port or one step of a path, and nothing else: an untrusted file cannot reach another
    scheme, path or query than the configured one. The name is host and port, and the path as well where nodes differ
    in nothing else, as behind a proxy. Raises ``ValueError`` when a value is missing or not what it should be.
    """
    for name in _PLACEHOLDER.findall(template):
        value = values.get(name, "")
        if not value:
            raise ValueError(f"there is no {name} to put into {{{name}}}")
        match name:
            case "host":
                valid = _is_host(value)
            case "target":
                valid = str(address(value)) == value
            case _:
                valid = bool(_WORD.fullmatch(value)) and value not in {".", ".."}
        if not valid:
            raise ValueError(f"the {name} {shown(value)!r} cannot be part of a URL")
    url = _PLACEHOLDER.sub(lambda match: values[match[1]], template)
    parts = urlsplit(url)
    name = parts.netloc
    if not _PLACEHOLDER.search(urlsplit(template).netloc):
        name = f"{parts.netloc}{parts.path}".rstrip("/")
    return NodeTarget(url=url, name=name, node_id=node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host, in brackets when it is an IPv6 address, and maybe a port."""

    host: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


def address(text: str) -> Address:
    """Return the parts of ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT``. Raises ``ValueError`` for anything else."""
    host, port = text, ""
    if not text.endswith("]") and ":" in text:
        host, _, port = text.rpartition(":")
        if not _PORT.fullmatch(port) or not 0 < int(port) <= _LAST_PORT:
            raise ValueError(f"{shown(text)!r} has no valid port")
    if not _is_host(host):
        raise ValueError(f"{shown(text)!r} is not HOST:PORT")
    return Address(host=host, port=port)


def _is_host(text: str) -> bool:
    """Return whether a text can be the host of a URL: a name, an IPv4 address, or an IPv6 address in brackets."""
    if text.startswith("["):
        return text.endswith("]") and bool(_IPV6.fullmatch(text[1:-1]))
    return bool(_HOST.fullmatch(text))


def merged(
    fixed: Iterable[SourceConfig], targets: Iterable[NodeTarget], common: FoundSourceConfig
) -> list[SourceConfig]:
    """
    Return the sources for the found targets, each address once and without configured ones.

    Two sources with the same URL or the same name are the same, and the first one stays. Two addresses of one node
    both stay: when one of them fails, the other is read.
    """
    seen: set[object] = set()
    for config in fixed:
        seen |= _identities(config)
    configs = []
    for target in targets:
        config = source_of(target, common)
        identities = _identities(config)
        if seen.isdisjoint(identities):
            configs.append(config)
            seen |= identities
    return configs


def confirmed_ids(fixed: Iterable[SourceConfig], targets: Iterable[NodeTarget]) -> dict[str, str]:
    """Return the ids that a discovery knows for addresses of configured sources, by the name of the source."""
    ids: dict[str, str] = {}
    for target in targets:
        if target.node_id is not None:
            ids.setdefault(target.url.rstrip("/"), str(target.node_id))
    addresses = ((config.label, config.url.rstrip("/")) for config in fixed)
    return {label: ids[url] for label, url in addresses if url in ids}


def source_of(target: NodeTarget, common: FoundSourceConfig) -> SourceConfig:
    """
    Return the source for a target, with the settings that all found ones have.

    Raises ``ValueError`` for an invalid URL.
    """
    settings = {name: getattr(common, name) for name in type(common).model_fields}
    return SourceConfig(url=target.url, name=target.name, node_id=target.node_id, **settings)


def _identities(config: SourceConfig) -> set[object]:
    """Return the name and the URL of a source, either of which tells it from others."""
    return {("name", config.label), ("url", config.url.rstrip("/"))}
