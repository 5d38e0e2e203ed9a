"""From the configuration of a source to the source, or to two of them where the format is to be detected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import urlsplit

from quotascope.clients.errors import InvalidConnection

from ..config import Dialect, SourceConfig, secret, tls_of
from ..errors import ConfigError, SourceError, SourceUnreadable
from ..mapping import BeanTable
from .dialects import DIALECTS
from .fetch import HttpTarget
from .jolokia import JolokiaSource
from .prometheus_text import PrometheusTextSource
from .source import Source


def build_sources(configs: Iterable[SourceConfig]) -> list[Source]:
    """The sources. Raises ``ConfigError`` with the problems of all of them."""
    sources: list[Source] = []
    problems: list[str] = []
    for config in configs:
        try:
            sources.append(build_source(config))
        except ConfigError as error:
            problems.extend(f"{error.subject}: {text}" for text in error.problems)
    if problems:
        raise ConfigError("configuration", problems)
    return sources


def build_source(config: SourceConfig) -> Source:
    """The source that a configuration describes. Raises ``ConfigError`` when one of its files cannot be used."""
    try:
        target = _target(config)
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise ConfigError(f"source {config.label!r}", [problem]) from None
    except (InvalidConnection, ValueError) as error:
        raise ConfigError(f"source {config.label!r}", [str(error)]) from None
    name = config.label
    match config.dialect:
        case Dialect.JOLOKIA:
            return JolokiaSource(name, target)
        case Dialect.AUTO:
            first: Source = PrometheusTextSource(name, target)
            second: Source = JolokiaSource(name, target)
            if "jolokia" in urlsplit(config.url).path:
                first, second = second, first
            return DetectedSource(first, second, config.timeout_seconds)
    forced = {dialect.name: dialect for dialect in DIALECTS}.get(config.dialect)
    return PrometheusTextSource(name, target, forced)


def _target(config: SourceConfig) -> HttpTarget:
    auth = config.basic_auth
    values = {name: each.get_secret_value() for name, each in config.headers.items()}
    for name, file in config.header_files.items():
        values[name] = secret(None, file) or ""
    for name, value in values.items():
        if not value.isprintable():
            raise ValueError(f"the value of the header {name} holds control characters")
    return HttpTarget(
        url=config.url,
        node_id=None if config.node_id is None else str(config.node_id),
        timeout_seconds=config.timeout_seconds,
        max_bytes=config.max_answer_bytes,
        username=auth.username if auth else None,
        password=(secret(auth.password, auth.password_file) or "") if auth else "",
        headers=values,
        tls=tls_of(config.tls).context() if config.tls else None,
    )


class DetectedSource:
    """
    Reads a node through an agent of which only the URL is known: in the first way that works, as long as it works.

    Only an answer that cannot be understood is a reason to try the other way: a node that is down, or refuses
    credentials, would do the same again.

    Args:
        first: The likelier way.
        second: The other one, at the same address and under the same name.
        timeout_seconds: Longest read, in both ways together.

    """

    def __init__(self, first: Source, second: Source, timeout_seconds: float = 60.0) -> None:
        self._timeout_seconds = timeout_seconds
        self.name, self.node_id = first.name, first.node_id
        self._likely, self._other = first, second

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the likelier way, as far as it is known."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``: the one of the likelier way."""
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            return await self._likely.read()
        except SourceUnreadable as error:
            try:
                async with asyncio.timeout_at(ends):
                    table = await self._other.read()
            except (SourceError, TimeoutError):
                raise error from None
        self._likely, self._other = self._other, self._likely
        return table

    async def close(self) -> None:
        """Release connections."""
        await self._likely.close()
        await self._other.close()
