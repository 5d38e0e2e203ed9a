"""From file, environment and flags to one configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quotascope.quotas import named

from ..errors import ConfigError
from .file import Document, Place, read_document
from .model import Config
from .override import Override, environment_overrides
from .problems import Origins, problems


def load_config(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Iterable[Override] = (),
) -> Config:
    """
    The configuration by precedence: flags, environment, file, defaults.

    Raises ``ConfigError`` with all mistakes at once.
    """
    document = read_document(path, environ) if path else Document()
    subject = named(path) if path else "configuration"
    return build_config(document, subject, environ, flags)


def build_config(
    document: Document,
    subject: str,
    environ: Mapping[str, str],
    flags: Iterable[Override] = (),
) -> Config:
    """As ``load_config``, from a document. Raises ``ConfigError``, which calls it ``subject``."""
    overrides, unknown = environment_overrides(environ)
    overrides.extend(flags)
    found = [(0, text) for text in unknown]
    found.extend((line, f"line {line}: {text}") for line, text in document.problems)
    try:
        config = Config.model_validate(_replaced(document.data, overrides))
    except ValidationError as error:
        found.extend(problems(error, _origins(document, overrides)))
    if found:
        in_order = sorted(found, key=lambda problem: problem[0])
        raise ConfigError(subject, [text for _, text in in_order]) from None
    return config


def _replaced(data: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    result = dict(data)
    for override in overrides:
        *parents, key = override.place
        section = result
        for parent in parents:
            below = section.get(parent)
            section[parent] = section = dict(below) if isinstance(below, dict) else {}
        section[key] = override.value
    return result


def _origins(document: Document, overrides: Iterable[Override]) -> Origins:
    replaced: dict[Place, str] = {o.place: o.origin for o in overrides}
    return Origins(
        lines=document.lines,
        raw=document.raw,
        overrides=replaced,
        broken=document.broken,
    )
