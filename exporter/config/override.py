"""Values from outside the configuration file: environment variables and flags."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .schema import value_places

PREFIX = "QUOTASCOPE_"
_SOURCES = "QUOTASCOPE_SOURCES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One value given outside the file; it replaces what the file says."""

    place: tuple[str, ...]
    """Keys from the top, such as ``("server", "port")``."""
    value: object
    origin: str
    """How the user calls it, such as ``--port``."""


def variable(place: tuple[str, ...]) -> str:
    """
    The environment variable for a place: ``QUOTASCOPE_SERVER__PORT``.

    Two underscores between levels: Kubernetes sets ``QUOTASCOPE_SERVER_PORT`` by itself
    where a service is called ``quotascope-server``.
    """
    return PREFIX + "__".join(place).upper()


def environment_overrides(
    environ: Mapping[str, str],
) -> tuple[list[Override], list[str]]:
    """The values that the environment gives, and what is wrong with its names."""
    names = {variable(place): place for place in value_places()}
    overrides = [
        Override(place=place, value=environ[name], origin=name)
        for name, place in names.items()
        if name in environ
    ]
    if _SOURCES in environ:
        overrides.append(sources_override(environ[_SOURCES].split(), _SOURCES))
    return overrides, [
        _unknown(name, names)
        for name in sorted(environ)
        if name.startswith(PREFIX) and "__" in name and name not in names
    ]


def sources_override(texts: Iterable[str], origin: str) -> Override:
    """Sources in their short form, see ``source_from_text``."""
    sources = [source_from_text(text) for text in texts]
    return Override(place=("sources",), value=sources, origin=origin)


def source_from_text(text: str) -> dict[str, object]:
    """
    A source in its short form, ``[DIALECT[:NODE_ID]=]URL``.

    ``auto:1=http://broker-1:9404/metrics``. What is missing or wrong is left to
    the checks of the configuration.
    """
    head, equals, url = text.partition("=")
    if not equals or "://" in head:  # the first = is in the URL's query
        return {"url": text}
    dialect, colon, node_id = head.partition(":")
    source: dict[str, object] = {"dialect": dialect, "url": url}
    return {**source, "node_id": node_id} if colon else source


def discovery_overrides(text: str, origin: str) -> list[Override]:
    """Discovery by the cluster in its short form, ``[DIALECT=]URL`` with placeholders."""
    found = source_from_text(text)
    url = Override(
        place=("discovery", "kafka", "url"), value=found["url"], origin=origin
    )
    if found["url"] == text:
        return [url]
    dialect = ("discovery", "source", "dialect")
    return [url, Override(place=dialect, value=found["dialect"], origin=origin)]


def _unknown(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"unknown environment variable {name}{hint}"
