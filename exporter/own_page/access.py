"""How an exporter is asked for its page: its address, and what it wants to see."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from quotascope.clients.security import Tls

from ..config import secret
from ..errors import ConfigError
from ..sources.fetch import HttpTarget

_PATH: Final = "/metrics"
_FLAG: Final = "--exporter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who we are to an exporter that wants a password."""

    user: str
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    """Goes before ``password``."""


def exporter_url(text: str) -> str:
    """
    The address of an exporter's page; its path may be left out.

    >>> exporter_url("http://quotascope:9749")
    'http://quotascope:9749/metrics'

    Raises ``ConfigError`` when it is no http or https address, or holds a password, which others could see.
    """
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(_FLAG, ["expected an address such as http://quotascope:9749"])
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            _FLAG,
            [
                "takes no user or password in the address: --exporter-user and --exporter-password-file do"
            ],
        )
    path = parts.path if parts.path.strip("/") else _PATH
    return parts._replace(path=path, fragment="").geturl()


def exporter_target(
    url: str,
    login: Login | None = None,
    tls: Tls | None = None,
    timeout_seconds: float = 10.0,
) -> HttpTarget:
    """Where and how to ask. Raises ``ConfigError``, and ``InvalidConnection`` for files of TLS that cannot be used."""
    return HttpTarget(
        url=exporter_url(url),
        timeout_seconds=timeout_seconds,
        username=None if login is None else login.user,
        password="" if login is None else _password(login),
        tls=None if tls is None else tls.context(),
    )


def _password(login: Login) -> str:
    subject = "--exporter-password-file"
    if ":" in login.user:
        raise ConfigError("--exporter-user", ["must not hold a colon"])
    if login.password_file is None and login.password is None:
        raise ConfigError("--exporter-user", [f"needs {subject}"])
    if login.password_file is None:
        return login.password or ""
    try:
        return secret(None, login.password_file) or ""
    except OSError as error:
        problem = f"{login.password_file} cannot be read: {error.strerror or error}"
        raise ConfigError(subject, [problem]) from None
    except ValueError as error:
        raise ConfigError(subject, [str(error)]) from None
