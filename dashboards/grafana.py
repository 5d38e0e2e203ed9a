"""
The part of Grafana's HTTP API that pushes dashboards.

``POST /api/folders`` and ``POST /api/dashboards/db``, with a service account's token, which is never an argument on the
command line. Redirects are not followed: the token is sent to the configured address and to no other.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from .errors import GrafanaError
from .files import FOLDER

FOLDER_UID = "quotascope"
VARIABLE = "GRAFANA_TOKEN"
_TIMEOUT = aiohttp.ClientTimeout(total=30)
_OK, _REDIRECTED, _BAD, _DENIED, _FORBIDDEN, _MISSING = 200, 300, 400, 401, 403, 404
_LONGEST_ANSWER = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Grafana:
    """A Grafana, and the credentials for it."""

    url: str
    """Address, with the path under which Grafana is served, if any."""
    token: str = field(repr=False)
    """Token of a service account that may create folders and dashboards."""
    ca_file: Path | None = None
    """PEM file of the authorities to trust instead of the system's."""


def read_token(file: Path | None, environment: Mapping[str, str]) -> str:
    """
    Return the token from a file, or else from the environment, without blanks around it.

    Raises:
        GrafanaError: There is no token, or it has characters that no token has.

    """
    token = environment.get(VARIABLE, "").strip()
    if file:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise GrafanaError(f"the file with the token cannot be read: {why}") from error
    if not token:
        where = str(file) if file else f"the environment ({VARIABLE})"
        raise GrafanaError(f"there is no token in {where}; Grafana gives one to a service account with the role Editor")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise GrafanaError("the token holds characters that no token has")
    return token


def push_all(grafana: Grafana, dashboards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """
    Save dashboards in their folder, over dashboards with the same uid, and return their addresses.

    Raises:
        GrafanaError: Grafana could not be reached, or refused.

    """
    return asyncio.run(_push(grafana, dashboards))


async def _push(grafana: Grafana, dashboards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    _check(grafana.url)
    try:
        tls = ssl.create_default_context(cafile=grafana.ca_file)
    except ssl.SSLError as error:
        raise GrafanaError(f"cannot use {grafana.ca_file}: it holds no certificate of an authority in PEM") from error
    except OSError as error:
        raise GrafanaError(f"cannot use {grafana.ca_file}: {error.strerror}") from error
    headers = {
        "Authorization": f"Bearer {grafana.token}",
        "Accept": "application/json",
    }
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls), timeout=_TIMEOUT, headers=headers
    ) as session:
        client = _Client(session, grafana)
        await client.make_folder()
        return [await client.save(dashboard) for dashboard in dashboards.values()]


def _check(url: str) -> None:
    """Refuse an address that cannot work, or has a password: messages show it."""
    if "@" in url:
        raise GrafanaError("the address of the Grafana must not contain a user or password: use a token")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and " " not in url
    except ValueError:  # the port is no number
        usable = False
    if not usable:
        raise GrafanaError(f"{url!r} is not the address of a Grafana: it needs http:// or https://, and a host")


class _Client:
    def __init__(self, session: aiohttp.ClientSession, grafana: Grafana) -> None:
        self._session = session
        self._url = grafana.url.rstrip("/")

    async def make_folder(self) -> None:
        """Create the folder, unless it exists."""
        status, answer = await self._ask("GET", f"/api/folders/{FOLDER_UID}")
        if status == _OK:
            return
        if status != _MISSING:
            self._refused("look for the folder", status, answer)
        folder = {"uid": FOLDER_UID, "title": FOLDER}
        status, answer = await self._ask("POST", "/api/folders", folder)
        if status != _OK:
            self._refused(f"create the folder {FOLDER}", status, answer)

    async def save(self, dashboard: Mapping[str, Any]) -> str:
        """Save a dashboard and return its address."""
        request = {
            "dashboard": dashboard,
            "folderUid": FOLDER_UID,
            "message": "quotascope dashboards push",
            "overwrite": True,
        }
        status, answer = await self._ask("POST", "/api/dashboards/db", request)
        if status != _OK:
            self._refused(f"save {dashboard['uid']}", status, answer)
        return f"{self._url}/d/{dashboard['uid']}"

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, str]:
        try:
            async with self._session.request(method, self._url + path, json=body, allow_redirects=False) as response:
                return response.status, await response.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            why = str(error) or type(error).__name__
            if isinstance(error, TimeoutError):
                why = f"no answer within {_TIMEOUT.total:g} s"
            elif isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
                code = error.os_error.errno or 0
                why = os.strerror(code) if code in errno.errorcode else error.os_error.strerror or why
            raise GrafanaError(f"cannot reach Grafana at {self._url}: {why}") from error

    def _refused(self, what: str, status: int, answer: str) -> None:
        advice = ""
        if status in (_DENIED, _FORBIDDEN):
            advice = " (the token needs the role Editor, or the permissions folders:create and dashboards:write)"
        elif _REDIRECTED <= status < _BAD:
            advice = " (it redirects: give the address that it redirects to)"
        raise GrafanaError(f"Grafana at {self._url} did not {what}: {status} {_reason(answer)}{advice}")


def _reason(answer: str) -> str:
    """Return Grafana's message, on one line."""
    try:
        body = json.loads(answer)
    except ValueError:
        body = None
    message = body.get("message") if isinstance(body, dict) else None
    printable = "".join(character for character in str(message or answer) if character.isprintable())
    return printable[:_LONGEST_ANSWER]
