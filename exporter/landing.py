"""The page at `/`: what this is, how the sources are, and why there may be nothing to see."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from .counts import left_out
from .diagnosis import Finding, diagnose
from .exposition import own_version
from .snapshot import Snapshot, SourceHealth
from .untrusted import one_line

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Content-Security-Policy: the page runs nothing and loads nothing."""
_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse}th,td{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}li,td{overflow-wrap:anywhere}"
    ".down,.error{color:#b00020}.up{color:#06763c}.warning{color:#8a5a00}"
)
_LINKS: Final = (
    ("/metrics", "the metrics"),
    ("/-/healthy", "whether this process lives"),
    ("/-/ready", "whether the first collection is done"),
)


def landing_page(snapshot: Snapshot | None, cluster: str | None) -> str:
    """The page as HTML; ``snapshot`` is None before the first collection."""
    title = "quotascope" if cluster is None else f"quotascope: {cluster}"
    body = "\n".join(_body(snapshot, title))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(snapshot: Snapshot | None, title: str) -> Iterator[str]:
    yield f"<h1>{_text(title)}</h1>"
    yield f"<p>Quota observability for Apache Kafka, version {_text(own_version())}.</p>"
    links = (f'<li><a href="{path}">{path}</a>: {what}</li>' for path, what in _LINKS)
    yield f"<ul>{''.join(links)}</ul>"
    if snapshot is None:
        yield "<p>The first collection is under way.</p>"
        return
    yield f"<p>Quota entities: {len(snapshot.measured)}, nodes: {len(snapshot.nodes)}.</p>"
    if rest := left_out(snapshot):
        yield f"<p>Not shown one by one: {rest}.</p>"
    yield from _findings(diagnose(snapshot))
    yield from _sources(snapshot.sources)


def _findings(findings: list[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield "<h2>What is wrong or missing</h2>"
    yield "<ul>"
    for finding in findings:
        name = finding.severity.value
        yield f'<li><b class="{name}">{name}</b>: {_text(finding.text)} <i>{_text(finding.advice)}</i></li>'
    yield "</ul>"


def _sources(sources: tuple[SourceHealth, ...]) -> Iterator[str]:
    yield "<h2>Sources</h2>"
    yield "<table>"
    yield "<tr><th>source</th><th>dialect</th><th>state</th><th>took</th><th>readings</th></tr>"
    for source in sources:
        state = "up" if source.up else "down"
        cells = (
            _text(source.name),
            _text(source.dialect),
            f'<span class="{state}">{state}</span>',
            f"{source.duration_seconds:.3f} s",
            str(source.readings),
        )
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</table>"


def _text(text: str) -> str:
    return escape(one_line(text))
