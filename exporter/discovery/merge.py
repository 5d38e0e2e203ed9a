"""What several discoveries found, each address once."""

from __future__ import annotations

from collections.abc import Iterable

from ..config import FoundSourceConfig, SourceConfig
from .target import Target


def merged(
    fixed: Iterable[SourceConfig],
    found: Iterable[Target],
    common: FoundSourceConfig,
) -> list[SourceConfig]:
    """
    The sources for what was found, without what is configured or was found before.

    Two are the same when they share the URL or the name; the one that comes first stays. Two addresses of one
    node both stay: when one of them fails, the other is read.
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


def confirmed(fixed: Iterable[SourceConfig], found: Iterable[Target]) -> dict[str, str]:
    """The ids that a discovery knows of the addresses of configured sources, by the name of these."""
    ids: dict[str, str] = {}
    for target in found:
        if target.node_id is not None:
            ids.setdefault(target.url.rstrip("/"), str(target.node_id))
    addresses = ((config.label, config.url.rstrip("/")) for config in fixed)
    return {label: ids[url] for label, url in addresses if url in ids}


def source_of(target: Target, common: FoundSourceConfig) -> SourceConfig:
    """The source for a target, with the settings that all found ones have. Raises ``ValueError`` for a URL that is none."""
    settings = {name: getattr(common, name) for name in type(common).model_fields}
    return SourceConfig(
        url=target.url, name=target.name, node_id=target.node_id, **settings
    )


def _marks(config: SourceConfig) -> set[object]:
    return {("name", config.label), ("url", config.url.rstrip("/"))}
