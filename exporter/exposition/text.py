"""The text formats that a scrape is answered with: which one, what stands above each family, and gzip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quotascope.metrics.catalog import Family

try:
    from isal import igzip as implementation
except ImportError:  # not built for every platform
    import gzip as implementation  # type: ignore[no-redef]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One text format of Prometheus."""

    content_type: str
    end: bytes = b""
    """The last line, if the format has a line that marks the end."""


TEXT: Final = TextFormat(content_type="text/plain; version=0.0.4; charset=utf-8")
OPENMETRICS: Final = TextFormat(
    content_type="application/openmetrics-text; version=1.0.0; charset=utf-8",
    end=b"# EOF\n",
)


def head(family: Family, text_format: TextFormat) -> bytes:
    """What stands before the series of a family, but for the end of its last line. OpenMetrics names counters and infos without their suffix, and knows units."""
    name, kind, unit = family.name, family.type.value, ""
    if text_format is OPENMETRICS:
        name = name.removesuffix("_total").removesuffix("_info")
        kind = "info" if family.is_info else kind
        unit = family.declared_unit and f"\n# UNIT {name} {family.declared_unit}"
    return f"# HELP {name} {family.documentation}\n# TYPE {name} {kind}{unit}".encode()


def gzipped(text: bytes) -> bytes:
    """The text in gzip format: isal's level 1 is as small as zlib's level 6, in a tenth of the time."""
    return implementation.compress(text, 1, mtime=0)


def choose_format(accept: str) -> TextFormat:
    """
    The format that an ``Accept`` header prefers.

    OpenMetrics where version 1.0.0 of it is accepted, or any version; text 0.0.4 otherwise.
    """
    offers = {TEXT: 0.0, OPENMETRICS: 0.0}
    for media, quality, version in _ranges(accept):
        if media == "application/openmetrics-text" and version in {None, "1.0.0"}:
            offers[OPENMETRICS] = max(offers[OPENMETRICS], quality)
        elif media in {"text/plain", "text/*", "*/*"}:
            offers[TEXT] = max(offers[TEXT], quality)
    return OPENMETRICS if offers[OPENMETRICS] > offers[TEXT] else TEXT


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` header allows gzip."""
    codings = {coding: quality for coding, quality, _ in _ranges(accept_encoding)}
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _ranges(header: str) -> Iterator[tuple[str, float, str | None]]:
    """Each part of the header with its quality, 0 for one that is no number, and the parameter ``version``."""
    for part in header.lower().split(","):
        name, *given = (piece.strip() for piece in part.split(";"))
        pairs = (each.partition("=") for each in given)
        parameters = {key.strip(): value.strip() for key, _, value in pairs}
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        yield name, quality, parameters.get("version")
