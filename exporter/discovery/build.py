"""From the configuration of a source to the source, or to two of them where the format is to be detected."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from ..config import Dialect, PrometheusConfig, SourceConfig, header_values, secret, tls_of, usable
from ..errors import ConfigError
from ..sources.dialects import BY_NAME, TextDialect
from ..sources.jolokia import JolokiaSource
from ..sources.peer import HttpTarget
from ..sources.prometheus_api import PrometheusApi
from ..sources.prometheus_live import LivePrometheus
from ..sources.prometheus_nodes import Grouping
from ..sources.prometheus_text import PrometheusTextSource
from ..sources.source import DetectedSource, Source


def build_sources(configs: Iterable[SourceConfig]) -> list[Source]:
    """Return the sources. Raises ``ConfigError`` with the problems of all of them."""
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
    """Return the source that a configuration describes. Raises ``ConfigError`` when one of its files cannot be used."""
    target = _target(config, None if config.node_id is None else str(config.node_id))
    name = config.label
    match config.dialect:
        case Dialect.JOLOKIA:
            return JolokiaSource(name, target)
        case Dialect.AUTO:
            likelier: Source = PrometheusTextSource(name, target)
            second: Source = JolokiaSource(name, target)
            if "jolokia" in urlsplit(config.url).path:
                likelier, second = second, likelier
            return DetectedSource(likelier, second, config.timeout_seconds)
    return PrometheusTextSource(name, target, _forced(config.dialect))


def server_of(config: PrometheusConfig) -> tuple[LivePrometheus, TextDialect | None]:
    """
    Return the Prometheus server that a configuration describes, and the dialect that it forces.

    Raises ``ConfigError`` when one of its files cannot be used.
    """
    api, grouping, forced = api_of(config)
    return LivePrometheus(api, grouping, config.selector), forced


def api_of(config: PrometheusConfig) -> tuple[PrometheusApi, Grouping, TextDialect | None]:
    """
    Return the API of a Prometheus server, the labels that tell its nodes apart, and the forced dialect.

    Raises ``ConfigError`` when one of its files cannot be used.
    """
    grouping = Grouping(instance_label=config.instance_label, replica_labels=config.replica_labels)
    return PrometheusApi(_target(config, None)), grouping, _forced(config.dialect)


def _target(config: SourceConfig | PrometheusConfig, node_id: str | None) -> HttpTarget:
    """Return the address of a source with its login and bounds. Raises ``ConfigError`` for a file of no use."""
    auth = config.basic_auth
    with usable(f"source {config.label!r}"):
        return HttpTarget(
            url=config.url,
            node_id=node_id,
            timeout_seconds=config.timeout_seconds,
            max_bytes=config.max_answer_bytes,
            username=auth.username if auth else None,
            password=(secret(auth.password, auth.password_file) or "") if auth else "",
            headers=header_values(config.headers, config.header_files),
            tls=tls_of(config.tls).context() if config.tls else None,
        )


def _forced(dialect: str) -> TextDialect | None:
    """Return the dialect of Prometheus text that a configuration names; None if it is to be detected."""
    return BY_NAME.get(dialect)
