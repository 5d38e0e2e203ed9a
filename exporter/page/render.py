"""Templates, and what all pages have in common."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from markupsafe import Markup

from quotascope.metrics.catalog import boards
from quotascope.metrics.kafka.entities import LEVELS_LEGEND
from quotascope.pages import words

from ..exposition import own_version
from ..snapshot import Snapshot
from ..untrusted import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style, script and icon, and no script within the page."""
_LONGEST_NAME: Final = 256
_LONGEST_ADDRESS: Final = 6_000
"""Longest address of a link: the exporter reads 8 KiB of the first line of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """The surroundings of every page."""

    cluster: str | None = None
    runbooks: bool = False
    """True if runbooks are served, so that pages can link to them."""
    grafana_url: str | None = None
    teams: bool = False
    """True if teams are configured, so that pages link to theirs."""

    def board_of(self, user: str | None, client_id: str | None) -> str | None:
        """Return the address of the dashboard of an entity; None without a Grafana."""
        return self._board(boards.ENTITY, user=user or "", client_id=client_id or "")

    @property
    def board_of_teams(self) -> str | None:
        """The address of the dashboard of all teams; None without a Grafana."""
        return self._board(boards.TEAMS)

    def _board(self, uid: str, **variables: str) -> str | None:
        """Return the address of a dashboard with values of its variables; None without a Grafana."""
        if self.grafana_url is None:
            return None
        if self.cluster is not None:
            variables = {"cluster": self.cluster, **variables}
        query = urlencode([(f"var-{label}", value) for label, value in variables.items()], errors="replace")
        board = f"{self.grafana_url.rstrip('/')}/d/{uid}"
        return f"{board}?{query}" if query else board


@cache
def _templates() -> Environment:
    """Return the templates of this room, with the filters that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 60 ms

    templates = Environment(
        loader=PackageLoader("quotascope.exporter.page"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["one_line"] = one_line
    # every second part of a text holds names, whose direction of writing must not change that of the others
    templates.filters["isolated"] = lambda text: Markup("").join(
        Markup("<bdi>{}</bdi>").format(part) if place % 2 else part for place, part in enumerate(words.isolated(text))
    )
    return templates


def render(template: str, frame: PageFrame | None, **values: object) -> str:
    """Return a template of this room, in which every value is escaped."""
    frame = frame or PageFrame()
    title = "quotascope" if frame.cluster is None else name(frame.cluster)
    common = {
        "cluster": title,
        "runbooks": frame.runbooks,
        "has_team_page": frame.teams,
        "version": own_version(),
        "levels": LEVELS_LEGEND,
        "root": "",
    }
    return _templates().get_template(template).render({**common, **values})


def as_of(snapshot: Snapshot) -> dict[str, object]:
    """
    Return the values of a template that every page of a snapshot shows.

    They are its time, the age of its configured quotas then (empty where they are unknown), and the percentage from
    which an entity is near its limit.
    """
    age = None if snapshot.limits is None else snapshot.limits_health.age_seconds(snapshot.taken_at)
    age_text = "" if age is None else words.seconds(round(age))
    return {
        "taken": datetime.fromtimestamp(snapshot.taken_at, UTC),
        "quotas_age": age_text,
        "near_percent": f"{snapshot.thresholds.near_limit * 100:g}",
    }


def name(text: str) -> str:
    """Return an untrusted name on one line, cut to the width of a table."""
    return one_line(text, _LONGEST_NAME)


def clock_time(unix_seconds: float) -> str:
    """Return the time of day of a Unix time, as in ``12:04:45``; UTC."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%H:%M:%S")


def entity_address(user: str | None, client_id: str | None, path: str = "entity") -> str:
    """
    Return the address of the page of an entity; empty where the names are too long for one.

    A dimension that the entity does not have is left out; an empty client-id alone is that of clients that send none.
    """
    parameters = [(key, text) for key, text in (("user", user), ("client_id", client_id)) if text]
    query = urlencode(parameters or [("client_id", "")], errors="replace")
    return f"{path}?{query}" if len(query) <= _LONGEST_ADDRESS else ""
