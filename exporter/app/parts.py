"""Builds the parts of an exporter from its configuration, with the parts of an earlier one that are still the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from quotascope.quotas.candidates import Candidate

from ..alert_terms import DEFAULT_TERMS, AlertTerms, read_known_teams
from ..config import Config, KafkaConfig
from ..config.load import Loaded
from ..discovery.build import build_sources
from ..discovery.discovery import OpenAdmin, build_finders, check_found_sources
from ..discovery.target import Finder
from ..errors import ConfigError
from ..limits import LimitsSource
from ..limits.admin import AdminLimits, read_timeout
from ..otlp import OtlpPush, build_push
from ..otlp.push import Starts
from ..shadow import read_shadows
from ..sources.source import Source

ReadTerms: TypeAlias = Callable[[Path], AlertTerms]
"""Reads the configuration of the alerts. Raises ``ConfigError``."""
_LIMITS_SECONDS: Final = 30.0
"""The interval and timeout of a source of limits that has no configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that hold connections. None of them connects before it is used."""

    loaded: Loaded
    """The configuration that they were built from."""
    sources: tuple[Source, ...] = ()
    """The sources in the order of the configuration."""
    finders: tuple[Finder, ...] = ()
    limits: LimitsSource | None = None
    push: OtlpPush | None = None
    shadows: tuple[Candidate, ...] = ()
    alert_terms: AlertTerms = DEFAULT_TERMS
    """Thresholds and teams, as the alerts have them."""
    starts: Starts = field(default_factory=lambda: Starts(time.time_ns()))
    """Start times of the counters that pushes report; also kept while no push is configured."""
    renew: bool = False
    """True if the sources of found nodes have to be built again, because the settings that they share changed."""

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
    new: Loaded,
    old_parts: Parts | None = None,
    *,
    open_admin: OpenAdmin,
    read_terms: ReadTerms,
    environ: Mapping[str, str],
) -> Parts:
    """
    Return the parts of a configuration; one with the settings that it has in ``old_parts`` is the same object.

    ``read_terms`` reads the file of ``alerts_config``; ``environ`` may hold where to push. Raises ``ConfigError`` and
    ``ClientError``; ``old_parts`` stay as they were in any case.
    """
    known_parts = old_parts or Parts(loaded=Loaded(config=Config()))
    config, old_config = new.config, known_parts.config

    def is_same(settings_of: Callable[[Config], object]) -> bool:
        """Return whether settings, and the content of the files that they name, are the same as before."""
        return new.same(known_parts.loaded, settings_of(config), settings_of(old_config))

    check_found_sources(config)
    sources = _sources(new, known_parts)
    finders = known_parts.finders
    if not is_same(_finder_settings):
        finders = build_finders(config, open_admin)
    limits = known_parts.limits if config.kafka else None
    if config.kafka and (limits is None or not is_same(lambda settings: _connection(settings.kafka))):
        limits = AdminLimits(open_admin(config.kafka))
    push = known_parts.push
    if not is_same(lambda settings: (settings.otlp, settings.cluster)):
        push = build_push(config, environ, known_parts.starts)
    shadows = known_parts.shadows
    if not is_same(lambda settings: settings.shadow):
        shadows = read_shadows(config.shadow.file) if config.shadow.file else ()
    terms = known_parts.alert_terms
    if not is_same(lambda settings: (settings.alerts_config, settings.teams)):
        terms = _terms(config, read_terms)
    return Parts(
        loaded=new,
        sources=sources,
        finders=finders,
        limits=limits,
        push=push,
        shadows=shadows,
        alert_terms=terms,
        starts=known_parts.starts,
        renew=not is_same(lambda settings: settings.discovery.source),
    )


def _terms(config: Config, read_terms: ReadTerms) -> AlertTerms:
    """
    Return thresholds and teams.

    Raises ``ConfigError`` also if the alerts have other teams than the exporter: an alert would go to one team while
    the exporter counts its clients as another's.
    """
    terms = read_terms(config.alerts_config) if config.alerts_config else DEFAULT_TERMS
    teams = read_known_teams(config.teams) if config.teams else ()
    if terms.teams and terms.teams != teams:
        difference = "names other teams" if teams else "names teams, and this configuration none"
        problem = f"teams: {config.alerts_config} {difference}; write the same `teams: FILE` in both"
        raise ConfigError("configuration", [problem])
    return replace(terms, teams=teams)


def _sources(new: Loaded, old_parts: Parts) -> tuple[Source, ...]:
    """
    Return the sources in the order of the configuration.

    A source is built again if its settings or the content of its files have changed.
    """
    configs = {config.label: config for config in new.config.agents}
    old_sources = zip(old_parts.config.agents, old_parts.sources, strict=False)
    sources = {
        old.label: source for old, source in old_sources if new.same(old_parts.loaded, configs.get(old.label), old)
    }
    fresh = [config for label, config in configs.items() if label not in sources]
    sources.update(zip((config.label for config in fresh), build_sources(fresh), strict=True))
    return tuple(sources[label] for label in configs)


def _finder_settings(config: Config) -> tuple[object, ...]:
    """Return all settings that the finders depend on."""
    discovery, kafka = config.discovery, config.kafka
    connection = _connection(kafka) if discovery.kafka or config.prometheus_servers else None
    timeout = kafka.timeout_seconds if kafka else None
    return discovery.kafka, discovery.file_sd, connection, timeout, config.prometheus_servers


def _connection(kafka: KafkaConfig | None) -> KafkaConfig | None:
    """Return the settings without the one that concerns no connection."""
    default = KafkaConfig.model_fields["refresh_interval_seconds"].default
    return kafka and kafka.model_copy(update={"refresh_interval_seconds": default})
