"""What several discoveries found, each node once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..config import FoundSourceConfig, SourceConfig
from .target import Target


def merged(
    fixed: Iterable[SourceConfig],
    found: Iterable[Target],
    common: FoundSourceConfig,
) -> list[SourceConfig]:
    """
    The sources for what was found, without what is configured or was found before.

    Two are the same when they share the node id, the URL or the name; the one that comes
    first stays.
    """
    seen: set[object] = set()
    for config in fixed:
        seen |= _marks(config)
    kept = []
    for target in found:
        config = source_of(target, common)
        marks = _marks(config)
        if seen.isdisjoint(marks):
            kept.append(config)
            seen |= marks
    return kept


def source_of(target: Target, common: FoundSourceConfig) -> SourceConfig:
    """The source for a target, with the settings that all found ones have. Raises ``ValueError`` for a URL that is none."""
    settings = {name: getattr(common, name) for name in type(common).model_fields}
    return SourceConfig(
        url=target.url, name=target.name, node_id=target.node_id, **settings
    )


def _marks(config: SourceConfig) -> set[object]:
    return set(_each_mark(config))


def _each_mark(config: SourceConfig) -> Iterator[object]:
    yield "name", config.label
    yield "url", config.url.rstrip("/")
    if config.node_id is not None:
        yield "node", config.node_id
