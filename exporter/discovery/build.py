"""From the configuration of discovery to what finds and follows nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from quotascope.clients.quota_admin import Node, QuotaAdmin

from ..config import Config, FileDiscoveryConfig, KafkaConfig, KafkaDiscoveryConfig
from ..errors import ConfigError
from ..limits.admin import read_timeout
from ..sources.build import build_source, build_sources
from .files import FileFinder
from .follow import Discovery
from .kafka import KafkaFinder
from .merge import source_of
from .nodes import Templates
from .roster import Roster
from .target import Finder, Target, UrlTemplate

OpenAdmin = Callable[[KafkaConfig], QuotaAdmin]


def build_roster(
    config: Config, open_admin: OpenAdmin
) -> tuple[Roster, Discovery | None]:
    """
    The sources, and what finds more of them where that is configured.

    Raises ``ConfigError`` and what ``open_admin`` raises.
    """
    roster = Roster(build_sources(config.sources))
    if not config.discovery.wanted:
        return roster, None
    try_settings(config)
    return roster, discovery_of(config, build_finders(config, open_admin), roster)


def build_finders(config: Config, open_admin: OpenAdmin) -> tuple[Finder, ...]:
    """What finds sources. Raises as ``build_roster``."""
    return tuple(_finders(config, open_admin))


def discovery_of(
    config: Config, finders: Sequence[Finder], roster: Roster
) -> Discovery:
    """What lets the roster follow these finders."""
    timeout = read_timeout(config.kafka) if config.kafka else 60.0
    common = config.discovery.source
    return Discovery(finders, config.sources, common, roster, timeout)


def _finders(config: Config, open_admin: OpenAdmin) -> Iterator[Finder]:
    cluster, files = config.discovery.kafka, config.discovery.file_sd
    if cluster is not None and config.kafka is not None:
        yield _kafka_finder(cluster, open_admin(config.kafka))
    if files is not None:
        yield _file_finder(files)


def _kafka_finder(config: KafkaDiscoveryConfig, admin: QuotaAdmin) -> KafkaFinder:
    templates = Templates(
        broker=UrlTemplate(config.url),
        controller=UrlTemplate(config.controller_url or config.url),
    )
    listed = _listed(config.controllers)
    return KafkaFinder(admin, templates, listed, config.refresh_interval_seconds)


def _file_finder(config: FileDiscoveryConfig) -> FileFinder:
    return FileFinder(
        config.files,
        UrlTemplate(config.url),
        config.match,
        config.node_id_label,
        config.refresh_interval_seconds,
    )


def _listed(controllers: Sequence[str]) -> list[Node]:
    parts = (text.partition("@") for text in controllers)
    return [
        Node(node_id=int(node_id), host=_without_port(address), port=0)
        for node_id, _, address in parts
    ]


def _without_port(address: str) -> str:
    bracket = address.rfind("]")
    return address[: bracket + 1] or address.partition(":")[0]


def try_settings(config: Config) -> None:
    """Fail now, with ``ConfigError``, and not with the first node that is found."""
    if not config.discovery.wanted:
        return
    example = Target(url="https://node.invalid/", name="discovery.source")
    try:
        build_source(source_of(example, config.discovery.source))
    except ConfigError as error:
        raise ConfigError("discovery.source", error.problems) from None
