"""From the configuration of the sources to the sources themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from quotascope.clients.errors import InvalidConnection

from ..config import Dialect, SourceConfig, secret
from ..errors import ConfigError
from ..tls import tls_of
from .detected import DetectedSource
from .http.target import HttpTarget
from .jolokia import JolokiaSource
from .prometheus_text.dialects import DIALECTS
from .prometheus_text.source import PrometheusTextSource
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
    subject = f"source {config.label!r}"
    try:
        target = _target(config)
    except (InvalidConnection, OSError, ValueError) as error:
        raise ConfigError(subject, [_reason(error)]) from None
    if config.dialect is Dialect.AUTO:
        return _detected(config, target)
    if config.dialect is Dialect.JOLOKIA:
        return JolokiaSource(config.label, target)
    forced = {dialect.name: dialect for dialect in DIALECTS}.get(config.dialect)
    return PrometheusTextSource(config.label, target, forced)


def _detected(config: SourceConfig, target: HttpTarget) -> Source:
    jolokia = JolokiaSource(config.label, target)
    text = PrometheusTextSource(config.label, target)
    if "jolokia" in urlsplit(config.url).path:
        return DetectedSource(jolokia, text, config.timeout_seconds)
    return DetectedSource(text, jolokia, config.timeout_seconds)


def _target(config: SourceConfig) -> HttpTarget:
    auth = config.basic_auth
    return HttpTarget(
        url=config.url,
        node_id=None if config.node_id is None else str(config.node_id),
        timeout_seconds=config.timeout_seconds,
        max_bytes=config.max_answer_bytes,
        username=auth.username if auth else None,
        password=(secret(auth.password, auth.password_file) or "") if auth else "",
        headers=dict(_headers(config)),
        tls=tls_of(config.tls).context() if config.tls else None,
    )


def _headers(config: SourceConfig) -> Iterator[tuple[str, str]]:
    for name, value in config.headers.items():
        yield name, _header_value(name, value.get_secret_value())
    for name, file in config.header_files.items():
        yield name, _header_value(name, secret(None, file) or "")


def _header_value(name: str, value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"the value of the header {name} holds control characters")
    return value


def _reason(error: InvalidConnection | OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
