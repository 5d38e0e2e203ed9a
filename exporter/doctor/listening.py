"""Whether the exporter can listen where it is told to, or already does."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterable
from typing import Final

import aiohttp

from ..config import ServerConfig
from ..os_reason import os_reason
from ..web.connection import advice_of_files, most_connections
from ..web.settings import load_web_settings
from .result import Result, Verdict

_SECONDS: Final = 3.0
_REFUSALS: Final = (401, 403, 421)


async def listening(server: ServerConfig) -> Iterable[Result]:
    """
    Try to listen; where that is taken, ask who answers. Then whether so many connections can be open at once.

    Raises ``ConfigError`` for mistakes in the web config file.
    """
    if server.web_config_file is not None:
        load_web_settings(server.web_config_file)
    return [await _address(server), *_open_files(server.max_connections)]


def _open_files(wanted: int) -> Iterable[Result]:
    most = most_connections(wanted)
    if most < wanted:
        text = f"Only {most} connections can be open at once instead of {wanted} (server.max_connections): a process that is started like this one may open too few files."
        advice = advice_of_files(wanted)
        yield _result(Verdict.LOOK, text, f"{advice[0].upper()}{advice[1:]}.")


async def _address(server: ServerConfig) -> Result:
    where = f"{server.address} port {server.port}"
    if server.port == 0:
        return _result(Verdict.FINE, f"Any free port of {server.address} will do.")
    error = await asyncio.to_thread(_try, server.address, server.port)
    if error is None:
        return _result(Verdict.FINE, f"{where} is free.")
    if error.errno != errno.EADDRINUSE:
        text = f"Cannot listen on {where}: {os_reason(error)}."
        return _result(Verdict.BROKEN, text, "Check server.address.")
    return await _occupied(server, where)


def _try(address: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, at = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(at)
            tried.listen()
    except OSError as error:
        return error
    return None


async def _occupied(server: ServerConfig, where: str) -> Result:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.address, server.address)  # noqa: S104 - compared, not bound
    place = f"[{host}]" if ":" in host else host
    for scheme in ("http", "https"):
        status, text = await _asked(f"{scheme}://{place}:{server.port}/-/healthy")
        if text == "healthy\n":
            return _result(Verdict.FINE, f"An exporter runs already on {where}.")
        if status in _REFUSALS:
            told = f"Something that wants a password answers on {where}: probably this exporter."
            return _result(Verdict.NOTE, told)
    if server.web_config_file is not None:
        told = f"{where} is taken, perhaps by this exporter: who wants a certificate cannot be asked."
        return _result(Verdict.NOTE, told)
    return _result(
        Verdict.BROKEN,
        f"Another program has {where}.",
        "Set server.port, or end that program.",
    )


async def _asked(url: str) -> tuple[int, str]:
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    trusting = (
        ssl.create_default_context()
    )  # it is this machine, and only its kind of answer matters
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, ssl=trusting, allow_redirects=False) as answer,
        ):
            return answer.status, (await answer.content.read(100)).decode("latin-1")
    except (aiohttp.ClientError, OSError, ValueError):
        return 0, ""


def _result(verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(check="listening", verdict=verdict, text=text, advice=advice)
