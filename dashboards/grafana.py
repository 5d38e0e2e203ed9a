"""
Grafana's HTTP API, as far as putting dashboards there needs it.

``POST /api/folders`` and ``POST /api/dashboards/db``, with a service account's token.
Redirects are not followed: the token goes to the address that was given and to no other.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from .errors import GrafanaError
from .files import FOLDER
from .normal import Json

FOLDER_UID = "quotascope"
_TIMEOUT = aiohttp.ClientTimeout(total=30)
_OK, _REDIRECTED, _BAD, _DENIED, _FORBIDDEN, _MISSING = 200, 300, 400, 401, 403, 404
_LONGEST_ANSWER = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Grafana:
    """Where a Grafana is, and how to be let in."""

    url: str
    """Its address, with the path under which it is served, if any."""
    token: str = field(repr=False)
    """Of a service account that may create folders and dashboards."""
    ca_file: Path | None = None
    """PEM file of the authorities to trust instead of the system's."""


def push_all(
    grafana: Grafana, dashboards: Mapping[str, Mapping[str, Json]]
) -> list[str]:
    """
    Put dashboards into their folder, over what is there under the same uid; gives their addresses.

    Raises:
        GrafanaError: Grafana could not be reached, or refused.

    """
    return asyncio.run(_push(grafana, dashboards))


async def _push(
    grafana: Grafana, dashboards: Mapping[str, Mapping[str, Json]]
) -> list[str]:
    _check(grafana.url)
    connector = aiohttp.TCPConnector(ssl=_tls(grafana))
    async with aiohttp.ClientSession(
        connector=connector, timeout=_TIMEOUT, headers=_headers(grafana)
    ) as session:
        client = _Client(session, grafana)
        await client.make_folder()
        return [await client.save(each) for each in dashboards.values()]


def _check(url: str) -> None:
    """An address is shown in messages: nothing secret may be part of it."""
    if "@" in url:
        raise GrafanaError(
            "the address of the Grafana must not hold a user or password: a token lets you in"
        )
    if not _is_address(url):
        raise GrafanaError(
            f"{url!r} is not the address of a Grafana: it needs http:// or https://, and a host"
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _headers(grafana: Grafana) -> dict[str, str]:
    return {"Authorization": f"Bearer {grafana.token}", "Accept": "application/json"}


def _tls(grafana: Grafana) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=grafana.ca_file)
    except OSError as error:  # ssl's own errors are among them
        raise GrafanaError(f"cannot use {grafana.ca_file}: {error}") from error


class _Client:
    def __init__(self, session: aiohttp.ClientSession, grafana: Grafana) -> None:
        self._session = session
        self._url = grafana.url.rstrip("/")

    async def make_folder(self) -> None:
        """Make the folder, unless it is there."""
        status, answer = await self._ask("GET", f"/api/folders/{FOLDER_UID}")
        if status == _OK:
            return
        if status != _MISSING:
            self._refused("look for the folder", status, answer)
        wanted = {"uid": FOLDER_UID, "title": FOLDER}
        status, answer = await self._ask("POST", "/api/folders", wanted)
        if status != _OK:
            self._refused(f"create the folder {FOLDER}", status, answer)

    async def save(self, dashboard: Mapping[str, Json]) -> str:
        """Save one dashboard; gives its address."""
        wanted = {
            "dashboard": dashboard,
            "folderUid": FOLDER_UID,
            "message": "quotascope dashboards push",
            "overwrite": True,
        }
        status, answer = await self._ask("POST", "/api/dashboards/db", wanted)
        if status != _OK:
            self._refused(f"save {dashboard['uid']}", status, answer)
        return f"{self._url}/d/{dashboard['uid']}"

    async def _ask(self, method: str, path: str, body: Json = None) -> tuple[int, str]:
        try:
            async with self._session.request(
                method, self._url + path, json=body, allow_redirects=False
            ) as response:
                return response.status, await response.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise GrafanaError(f"cannot reach Grafana at {self._url}: {why}") from error

    def _refused(self, what: str, status: int, answer: str) -> None:
        raise GrafanaError(
            f"Grafana at {self._url} did not {what}: {status} {_reason(answer)}{_advice(status)}"
        )


def _reason(answer: str) -> str:
    """What Grafana says, on one line."""
    try:
        told = json.loads(answer)
    except ValueError:
        told = None
    message = told.get("message") if isinstance(told, dict) else None
    printable = "".join(each for each in str(message or answer) if each.isprintable())
    return printable[:_LONGEST_ANSWER]


def _advice(status: int) -> str:
    if status in (_DENIED, _FORBIDDEN):
        return " (the token needs the role Editor, or the permissions folders:create and dashboards:write)"
    if _REDIRECTED <= status < _BAD:
        return " (it redirects: give the address that it redirects to)"
    return ""
