"""Builds the parts of an exporter from its configuration, with the parts of an earlier one that are still the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quotascope.quotas.candidates import Candidate

from ..config import Config, KafkaConfig
from ..config.load import Loaded
from ..discovery.discovery import OpenAdmin, build_finders, check_found_sources
from ..discovery.target import Finder
from ..limits import LimitsSource
from ..limits.admin import AdminLimits, read_timeout
from ..otlp import OtlpPush, build_push
from ..shadow import read_shadows
from ..sources.build import build_sources
from ..sources.source import Source

_LIMITS_SECONDS: Final = 30.0
"""The interval and timeout of a source of limits that has no configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that hold connections. None of them connects before it is used."""

    loaded: Loaded
    """The configuration that they were built from."""
    sources: tuple[Source, ...] = ()
    """In the order of the configuration."""
    finders: tuple[Finder, ...] = ()
    limits: LimitsSource | None = None
    push: OtlpPush | None = None
    shadows: tuple[Candidate, ...] = ()
    renew: bool = False
    """Whether the sources of found nodes have to be built again, because the settings that they share changed."""

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.loaded.config

    @property
    def limits_reading(self) -> tuple[LimitsSource | None, float, float]:
        """The source of the limits, the seconds that one read may take, and those between two reads."""
        kafka = self.config.kafka
        if kafka is None:
            return self.limits, _LIMITS_SECONDS, _LIMITS_SECONDS
        return self.limits, read_timeout(kafka), kafka.refresh_interval_seconds


def build_parts(
    now: Loaded, before: Parts | None = None, *, open_admin: OpenAdmin, environ: Mapping[str, str]
) -> Parts:
    """
    The parts of a configuration; one with the settings that it has in ``before`` is the same object.

    ``environ`` may hold where to push. Raises ``ConfigError`` and ``ClientError``; ``before`` stays as it was in any case.
    """
    known = before or Parts(loaded=Loaded(config=Config()))
    config, old = now.config, known.config
    check_found_sources(config)
    sources = _sources(now, known)
    finders = known.finders
    if not now.same(known.loaded, _finding(config), _finding(old)):
        finders = build_finders(config, open_admin)
    limits = known.limits if config.kafka else None
    kafka = _connection(config.kafka), _connection(old.kafka)
    if config.kafka and (limits is None or not now.same(known.loaded, *kafka)):
        limits = AdminLimits(open_admin(config.kafka))
    push = known.push
    same = now.same(known.loaded, config.otlp, old.otlp)
    if not same or config.cluster != old.cluster:
        push = build_push(config, environ, known.push.starts if known.push else None)
    shadows = known.shadows
    if not now.same(known.loaded, config.shadow, old.shadow):
        shadows = read_shadows(config.shadow.file) if config.shadow.file else ()
    common = config.discovery.source, old.discovery.source
    return Parts(
        loaded=now,
        sources=sources,
        finders=finders,
        limits=limits,
        push=push,
        shadows=shadows,
        renew=not now.same(known.loaded, *common),
    )


def _sources(now: Loaded, before: Parts) -> tuple[Source, ...]:
    """In the order of the configuration; those with other settings than before, or other content of their files, are built."""
    wanted = {config.label: config for config in now.config.sources}
    known = zip(before.config.sources, before.sources, strict=False)
    sources = {old.label: source for old, source in known if now.same(before.loaded, wanted.get(old.label), old)}
    fresh = [config for label, config in wanted.items() if label not in sources]
    sources.update(zip((config.label for config in fresh), build_sources(fresh), strict=True))
    return tuple(sources[label] for label in wanted)


def _finding(config: Config) -> tuple[object, ...]:
    """All settings that finders depend on."""
    found, kafka = config.discovery, config.kafka
    connection = _connection(kafka) if found.kafka else None
    timeout = kafka.timeout_seconds if kafka else None
    return found.kafka, found.file_sd, connection, timeout


def _connection(kafka: KafkaConfig | None) -> KafkaConfig | None:
    """The settings without the one that concerns no connection."""
    default = KafkaConfig.model_fields["refresh_interval_seconds"].default
    return kafka and kafka.model_copy(update={"refresh_interval_seconds": default})
