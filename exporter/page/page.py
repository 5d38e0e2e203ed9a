"""The page at `/`: who is closest to their limits, and how the cluster and the exporter are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.markup import Child, element, written

from ..exposition import own_version
from .cluster import delay_queues, findings, sources, summary, unused_limits
from .entities import entity_table, parts
from .form import selection_form
from .table import name
from .view import View

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style and script, and no script within the page."""
_LINKS: Final = (
    ("metrics", "metrics for Prometheus"),
    ("api/v1/entities", "these entities as JSON"),
    ("-/healthy", "whether this process lives"),
    ("-/ready", "whether the first collection is done"),
)
_RUNBOOKS: Final = ("runbooks/", "what to do about each alert")


def first_page(cluster: str | None, *, runbooks: bool = False) -> str:
    """The page before the first collection; ``runbooks`` says whether they are served."""
    text = element("p", "The first collection is under way.")
    return _framed(cluster, [text], runbooks=runbooks)


def entity_page(
    view: View, cluster: str | None, problem: str = "", *, runbooks: bool = False
) -> str:
    """The page as HTML; ``problem`` is what was wrong with the query, ``runbooks`` says whether they are served."""
    return _framed(cluster, _sections(view, problem), runbooks=runbooks)


def _sections(view: View, problem: str) -> Iterator[Element]:
    snapshot = view.snapshot
    taken = datetime.fromtimestamp(snapshot.taken_at, UTC)
    when = element("time", f"{taken:%Y-%m-%d %H:%M:%S} UTC", datetime=taken.isoformat())
    yield _live("when", element("p", "As of ", when, "."))
    yield element("p", role="status", id="status")
    yield _live("summary", summary(snapshot))
    yield _live("findings", *findings(snapshot))
    yield element("h2", "Who is closest to their limits")
    if problem:
        yield element("p", problem, class_="over", role="alert")
    yield selection_form(view.query)
    yield _live("entities", entity_table(view), parts(view))
    yield _live("queues", *delay_queues(snapshot))
    yield _live("sources", *sources(snapshot))
    yield _live("unused", *unused_limits(snapshot))


def _live(key: str, *children: Child) -> Element:
    """A part that the script replaces by a newer one."""
    return element("section", *children, id=key, class_="live")


def _framed(cluster: str | None, sections: Iterable[Element], *, runbooks: bool) -> str:
    title = "quotascope" if cluster is None else f"quotascope: {name(cluster)}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("link", rel="stylesheet", href="-/page.css"),
        element("script", src="-/page.js", defer="defer"),
    )
    skip = element("a", "To the entities", href="#entities", class_="skip")
    main = element("main", element("h1", title), *sections, _links(runbooks=runbooks))
    return written(element("html", head, element("body", skip, main), lang="en"))


def _links(*, runbooks: bool) -> Element:
    named = (*_LINKS, _RUNBOOKS) if runbooks else _LINKS
    links = (element("li", element("a", text, href=address)) for address, text in named)
    version = element("li", f"quotascope {own_version()}")
    return element("footer", element("ul", version, *links))
