"""What a configuration is made into, and what of it an earlier one has made already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from quotascope.clients.quota_admin import QuotaAdmin

from .config import Config, KafkaConfig
from .config.loaded import Loaded
from .discovery.build import build_finders, try_settings
from .discovery.target import Finder
from .limits import LimitsSource
from .limits.admin import AdminLimits
from .otlp import OtlpPush, build_push
from .sources.build import build_sources
from .sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that hold connections. None of them connects before it is asked."""

    loaded: Loaded
    """What they were made of."""
    sources: tuple[Source, ...] = ()
    """In the order of the configuration."""
    finders: tuple[Finder, ...] = ()
    limits: LimitsSource | None = None
    push: OtlpPush | None = None
    renew: bool = False
    """Whether found sources have to be made anew, because what they share is another."""

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.loaded.config


class Builder:
    """
    Makes parts.

    Args:
        open_admin: Opens the Admin API, which connects with its first call.
        environ: The environment, which may say where to push.

    """

    def __init__(
        self,
        open_admin: Callable[[KafkaConfig], QuotaAdmin],
        environ: Mapping[str, str],
    ) -> None:
        self._open_admin = open_admin
        self._environ = environ

    def build(self, now: Loaded, before: Parts | None = None) -> Parts:
        """
        The parts of a configuration; one whose settings are those of ``before`` is the same object.

        Raises ``ConfigError`` and ``ClientError``; ``before`` is as it was in any case.
        """
        known = before or Parts(loaded=Loaded(config=Config()))
        common = now.config.discovery.source, known.config.discovery.source
        try_settings(now.config)
        return Parts(
            loaded=now,
            sources=tuple(_sources(now, known)),
            finders=self._finders(now, known),
            limits=self._limits(now, known),
            push=self._push(now, known),
            renew=not now.same(known.loaded, *common),
        )

    def _finders(self, now: Loaded, before: Parts) -> tuple[Finder, ...]:
        if now.same(before.loaded, _ways(now.config), _ways(before.config)):
            return before.finders
        return build_finders(now.config, self._open_admin)

    def _limits(self, now: Loaded, before: Parts) -> LimitsSource | None:
        kafka = now.config.kafka
        if kafka is None:
            return None
        pair = _connection(kafka), _connection(before.config.kafka)
        if before.limits is not None and now.same(before.loaded, *pair):
            return before.limits
        return AdminLimits(self._open_admin(kafka))

    def _push(self, now: Loaded, before: Parts) -> OtlpPush | None:
        same = now.same(before.loaded, now.config.otlp, before.config.otlp)
        if same and now.config.cluster == before.config.cluster:
            return before.push
        starts = before.push.starts if before.push else None
        return build_push(now.config, self._environ, starts)


def _sources(now: Loaded, before: Parts) -> Iterator[Source]:
    known = {
        config.label: source
        for config, source in zip(before.config.sources, before.sources, strict=False)
    }
    then = {config.label: config for config in before.config.sources}
    kept = {
        config.label: known[config.label]
        for config in now.config.sources
        if config.label in known and now.same(before.loaded, config, then[config.label])
    }
    fresh = [config for config in now.config.sources if config.label not in kept]
    built = iter(build_sources(fresh))
    for config in now.config.sources:
        yield kept[config.label] if config.label in kept else next(built)


def _ways(config: Config) -> tuple[object, ...]:
    """All that finders depend on."""
    found = config.discovery
    asked = _connection(config.kafka) if found.kafka else None
    seconds = config.kafka.timeout_seconds if config.kafka else None
    return found.kafka, found.file_sd, asked, seconds


def _connection(kafka: KafkaConfig | None) -> KafkaConfig | None:
    """The settings without the one that concerns no connection."""
    every = KafkaConfig.model_fields["refresh_interval_seconds"].default
    return kafka and kafka.model_copy(update={"refresh_interval_seconds": every})
