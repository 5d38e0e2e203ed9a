"""Templates, and what all pages have in common."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quotascope.metrics import LEVELS_LEGEND
from quotascope.pages import words

from ..exposition import own_version
from ..snapshot import Snapshot
from ..untrusted import one_line

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style, script and icon, and no script within the page."""
_TEMPLATES: Final = Environment(
    loader=PackageLoader("quotascope.exporter.page"),
    autoescape=True,
    auto_reload=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["one_line"] = one_line
_TEMPLATES.filters["isolated"] = lambda text: Markup("").join(
    Markup("<bdi>{}</bdi>").format(part) if place % 2 else part for place, part in enumerate(words.isolated(text))
)
_LONGEST_NAME: Final = 200
_LONGEST_ADDRESS: Final = 6_000
"""Of a link: the exporter reads 8 KiB of the first line of a request."""
_ENTITY_BOARD: Final = "quotascope-entity"
"""The uid of the dashboard about a user and client-id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """What surrounds every page."""

    cluster: str | None = None
    runbooks: bool = False
    """Whether runbooks are served, so that pages can link to them."""
    grafana_url: str | None = None

    def board_of(self, user: str | None, client_id: str | None) -> str | None:
        """The address of the dashboard of an entity; None without a Grafana."""
        if self.grafana_url is None:
            return None
        names = [("user", user), ("client_id", client_id)]
        if self.cluster is not None:
            names.insert(0, ("cluster", self.cluster))
        query = [(f"var-{label}", value or "") for label, value in names]
        address = f"{self.grafana_url.rstrip('/')}/d/{_ENTITY_BOARD}"
        return f"{address}?{urlencode(query, errors='replace')}"


def render(template: str, frame: PageFrame | None, **values: object) -> str:
    """A template of this room, in which every value is escaped."""
    frame = frame or PageFrame()
    title = "quotascope" if frame.cluster is None else name(frame.cluster)
    common = {
        "cluster": title,
        "runbooks": frame.runbooks,
        "version": own_version(),
        "levels": LEVELS_LEGEND,
        "root": "",
    }
    return _TEMPLATES.get_template(template).render({**common, **values})


def as_of(snapshot: Snapshot) -> dict[str, object]:
    """For a template: when a snapshot was taken, and how old its configured quotas were; empty where they are unknown."""
    age = None if snapshot.limits is None else snapshot.limits_health.age_seconds(snapshot.taken_at)
    shown = "" if age is None else words.seconds(round(age))
    return {"taken": datetime.fromtimestamp(snapshot.taken_at, UTC), "quotas_age": shown}


def name(text: str) -> str:
    """An untrusted name on one line, cut to what a table can hold."""
    return one_line(text, _LONGEST_NAME)


def clock_time(at: float) -> str:
    """The time of day of a Unix time, as in ``12:04:45``; UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def entity_address(user: str | None, client_id: str | None, path: str = "entity") -> str:
    """
    The address of the page of an entity; empty where the names are too long for one.

    A dimension that the entity does not have is left out; an empty client-id alone is that of clients that send none.
    """
    given = [(key, text) for key, text in (("user", user), ("client_id", client_id)) if text]
    query = urlencode(given or [("client_id", "")], errors="replace")
    return f"{path}?{query}" if len(query) <= _LONGEST_ADDRESS else ""
