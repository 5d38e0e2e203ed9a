"""Options of `quotascope quotas` alone: whom a quota is for, and what is done with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_ENTITY = "Whom the quota is for"

User = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the principal, without User:.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultUser = Annotated[
    bool,
    typer.Option(
        "--default-user",
        "--user-defaults",
        help="All users without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
ClientId = Annotated[
    str | None,
    typer.Option(
        "--client-id",
        "--client",
        metavar="ID",
        help="The clients' client.id.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultClientId = Annotated[
    bool,
    typer.Option(
        "--default-client-id",
        "--client-defaults",
        help="All client ids without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
Ip = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="An IP address, or the name of a host that the brokers can look up.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultIp = Annotated[
    bool,
    typer.Option(
        "--default-ip",
        "--ip-defaults",
        help="All addresses without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
Apply = Annotated[
    bool, typer.Option("--apply", help="Do it. Without this, it is only shown.")
]
Top = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many of the affected to show.")
]
QuotasFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="YAML file with quotas, - for standard input."),
]
