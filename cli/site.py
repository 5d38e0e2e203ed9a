"""Options about the place where rules and dashboards are to work, which both of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quotascope.alerts import Site

ClusterLabel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Label that tells the clusters of one Prometheus apart (cluster); it need not exist.",
    ),
]
RunbookUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the runbooks are; {alert} stands for the alert's name. Without it, links lead to an example.",
    ),
]


def site(**given: str | None) -> Site:
    """What was given on the command line; the rest is as in the committed files."""
    from quotascope.alerts import Site

    return Site(**{name: value for name, value in given.items() if value is not None})
