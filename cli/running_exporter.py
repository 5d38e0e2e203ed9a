"""The exporter that a command reads instead of the brokers, and the login for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from quotascope.exporter.sources.fetch import HttpTarget

PASSWORD_VARIABLE: Final = "QUOTASCOPE_EXPORTER_PASSWORD"  # noqa: S105 - a name
_PANEL: Final = "A running exporter"

_Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Read a running exporter, such as http://quotascope:9749, instead of the brokers.",
        rich_help_panel=_PANEL,
    ),
]
_User = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="User name, if the exporter asks for a password.",
        rich_help_panel=_PANEL,
    ),
]
_PasswordFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"File with the password. It can also be in {PASSWORD_VARIABLE}.",
        rich_help_panel=_PANEL,
    ),
]
_CaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM file of the authorities to trust for its TLS; else the system's.",
        rich_help_panel=_PANEL,
    ),
]
_CertFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM file with the client certificate for it.",
        rich_help_panel=_PANEL,
    ),
]
_KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM file with its key, when that is not in the same file.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningExporter:
    """Its address, and the login for it."""

    exporter: _Url = None
    exporter_user: _User = None
    exporter_password_file: _PasswordFile = None
    exporter_ca_file: _CaFile = None
    exporter_cert_file: _CertFile = None
    exporter_key_file: _KeyFile = None

    def target(self) -> HttpTarget | None:
        """Where it answers; None when no exporter is named. Raises ``ConfigError`` and ``ClientError``."""
        from quotascope.clients.security import Tls
        from quotascope.exporter.api.client import ExporterLogin, exporter_target

        if self.exporter is None:
            return None
        login = None
        if self.exporter_user is not None:
            login = ExporterLogin(
                user=self.exporter_user,
                password=os.environ.get(PASSWORD_VARIABLE),
                password_file=self.exporter_password_file,
            )
        return exporter_target(
            self.exporter,
            login,
            Tls(
                ca_file=self.exporter_ca_file,
                cert_file=self.exporter_cert_file,
                key_file=self.exporter_key_file,
            ),
        )
