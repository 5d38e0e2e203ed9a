"""From the configuration of a source to the source, or to two of them where the format is to be detected."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from ..config import Dialect, SourceConfig, header_values, secret, tls_of, usable
from ..errors import ConfigError
from .dialects import DIALECTS
from .fetch import HttpTarget
from .jolokia import JolokiaSource
from .prometheus_text import PrometheusTextSource
from .source import DetectedSource, Source


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
    auth = config.basic_auth
    with usable(f"source {config.label!r}"):
        target = HttpTarget(
            url=config.url,
            node_id=None if config.node_id is None else str(config.node_id),
            timeout_seconds=config.timeout_seconds,
            max_bytes=config.max_answer_bytes,
            username=auth.username if auth else None,
            password=(secret(auth.password, auth.password_file) or "") if auth else "",
            headers=header_values(config.headers, config.header_files),
            tls=tls_of(config.tls).context() if config.tls else None,
        )
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
