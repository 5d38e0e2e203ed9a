"""Tries the network for the doctor: the agents' clocks, the exporter's own address, and the OTLP receiver."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
from yarl import URL

from quotascope.clients.errors import ClientError

from ..config import OtlpConfig, OtlpProtocol, ServerConfig, SourceConfig, tls_of
from ..errors import ConfigError, os_reason
from ..memory import MEBIBYTE, needed_bytes
from ..otlp.settings import receiver_of
from ..snapshot import SourceHealth
from ..untrusted import shown
from ..web.connection import advice_of_files, most_connections
from ..web.server import url_of
from ..web.settings import load_web_settings
from .catalog import Catalog, Finding
from .units import seconds

_TOLERANCE_SECONDS: Final = 2.0
"""Difference that is no fault: ``Date`` has whole seconds, and an answer takes a moment."""
_SECONDS: Final = 3.0
_OK: Final = 200
_DENIED: Final = (401, 403)
_REFUSALS: Final = (*_DENIED, 421)
"""Statuses with which an exporter may refuse this check: without a login, or by the host name (421)."""


async def clocks(configs: Iterable[SourceConfig], clock: Callable[[], float] = time.time) -> list[Finding]:
    """Compare each agent's clock, which is its node's, with this machine's. Agents that send no time are left out."""
    findings = await asyncio.gather(*(_clock(config, clock) for config in configs))
    return [finding for finding in findings if finding is not None]


async def _clock(config: SourceConfig, clock: Callable[[], float]) -> Finding | None:
    """Return a finding on an agent's clock; None if the agent does not answer or sends no time."""
    try:
        tls = tls_of(config.tls).context() if config.tls else True
    except (ClientError, OSError, ValueError) as error:
        return Catalog.CLOCK_UNREADABLE.found(config.label, problem=error)
    timeout = aiohttp.ClientTimeout(total=config.timeout_seconds)
    asked_at = clock()
    try:
        # without credentials: a refusal has the time as well
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.head(config.url, ssl=tls, allow_redirects=False) as answer,
        ):
            date = answer.headers.get("Date")
    except (aiohttp.ClientError, OSError, ValueError):
        return None  # the check of the agents gives the reason
    return clock_compared(config.label, date, asked_at, clock())


def clock_compared(source: str, date: str | None, asked_at: float, answered_at: float) -> Finding | None:
    """
    Return a finding on whether two clocks agree; None when the agent sent no time.

    Args:
        source: the agent's source.
        date: the header ``Date`` of its answer.
        asked_at: Unix time in seconds here, before the answer.
        answered_at: Unix time in seconds here, after the answer.

    """
    try:
        agent_time = parsedate_to_datetime(date or "").timestamp()
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    # the header lacks the fraction of a second, so that the agent's clock may be up to 1 s ahead of it
    behind, ahead = asked_at - (agent_time + 1), agent_time - answered_at
    off = max(behind, ahead)
    if off <= _TOLERANCE_SECONDS:
        return Catalog.CLOCK_AGREES.found(source)
    direction = "behind" if behind > ahead else "ahead of"
    return Catalog.CLOCK_OFF.found(source, off=seconds(off), direction=direction)


async def listening(server: ServerConfig) -> list[Finding]:
    """
    Return findings on whether the exporter can listen, or already does, and whether enough connections can be open.

    Raises ``ConfigError`` for mistakes in the web config file.
    """
    if server.web_config_file is not None:
        load_web_settings(server.web_config_file)
    findings = [await _port_finding(server, *endpoint) for endpoint in server.endpoints]
    max_connections = server.max_connections
    possible = most_connections(max_connections)
    if possible < max_connections:
        advice = advice_of_files(max_connections)
        hint = f"{advice[0].upper()}{advice[1:]}."
        findings.append(Catalog.TOO_FEW_FILES.found(most=possible, wanted=max_connections, hint=hint))
    return findings


def memory_findings(sources: Sequence[SourceHealth], limit: int | None) -> list[Finding]:
    """
    Return a finding where the numbers of all sources do not fit into ``limit`` bytes of memory.

    Return no finding where there is no limit.
    """
    up = [source for source in sources if source.up and source.stand_by_of is None]
    count = sum(source.readings for source in up)
    needed = needed_bytes(count)
    if limit is None or needed <= limit:
        return []
    unread = sum(not source.up for source in sources)
    advised = -(-needed * 5 // 4 // MEBIBYTE)  # a quarter more than needed; the signs make // round up
    return [
        Catalog.MEMORY_SHORT.found(
            count=count,
            sources="1 source" if len(up) == 1 else f"{len(up)} sources",
            more=f", beside those of {unread} that cannot be read," if unread else "",
            needed=needed // MEBIBYTE,
            limit=limit // MEBIBYTE,
            advised=advised,
        )
    ]


async def _port_finding(server: ServerConfig, address: str, port: int) -> Finding:  # noqa: PLR0911 - one for each finding
    """Return a finding on whether a port is free, or what listens on it."""
    host = address or "all addresses"
    if port == 0:
        return Catalog.PORT_ANY.found(address=host)
    place = f"{host} port {port}"
    error = await asyncio.to_thread(_bind_error, address or None, port)
    if error is None:
        return Catalog.PORT_FREE.found(place)
    if error.errno != errno.EADDRINUSE:
        return Catalog.CANNOT_LISTEN.found(place, reason=os_reason(error))
    for scheme in ("http", "https"):
        status, text = await _get(f"{url_of(scheme, address, port)}/-/healthy")
        if text == "healthy\n":
            return Catalog.PORT_SERVED.found(place)
        if status in _REFUSALS:
            return Catalog.PORT_SERVED_PROBABLY.found(place)
    if server.web_config_file is not None:
        return Catalog.PORT_TAKEN_PERHAPS.found(place)
    return Catalog.PORT_TAKEN.found(place)


def _bind_error(address: str | None, port: int) -> OSError | None:
    """Listen for a moment, on all addresses if ``address`` is None; return the error if that cannot be done."""
    try:
        addresses = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, socket_address = addresses[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(socket_address)
            listener.listen()
    except OSError as error:
        return error
    return None


async def _get(url: str) -> tuple[int, str]:
    """Return the status and the beginning of an answer from this machine; status 0 without an answer."""
    trusting = ssl.create_default_context()  # only the kind of answer matters
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, ssl=trusting, allow_redirects=False) as answer,
        ):
            return answer.status, (await answer.content.read(100)).decode("latin-1")
    except (aiohttp.ClientError, OSError, ValueError):
        return 0, ""


async def receiver(config: OtlpConfig, environ: Mapping[str, str]) -> list[Finding]:
    """
    Return a finding on whether the OpenTelemetry receiver accepts a request without metrics.

    Over gRPC, only the connection is tried.

    Raises ``ConfigError`` when a file or a variable cannot be used.
    """
    try:
        target = receiver_of(config, environ)
        tls = None
        if target.endpoint.startswith("https"):
            tls = ssl.create_default_context(cafile=target.ca_file)
            if target.cert_file is not None:
                tls.load_cert_chain(target.cert_file, target.key_file)
    except (OSError, ValueError) as error:
        raise ConfigError("otlp", [shown(error)]) from None
    try:
        async with asyncio.timeout(target.timeout_seconds):
            if target.protocol is OtlpProtocol.GRPC:
                url = URL(target.endpoint)
                _, writer = await asyncio.open_connection(url.host, url.port, ssl=tls)
                writer.close()
                return [Catalog.PUSH_CONNECTS.found(target.place)]
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    target.endpoint,
                    data=b"",
                    headers={
                        **target.headers,
                        "Content-Type": "application/x-protobuf",
                    },
                    ssl=True if tls is None else tls,
                    allow_redirects=False,
                ) as answer,
            ):
                status = answer.status
        if status == _OK:
            return [Catalog.PUSH_ACCEPTED.found(target.place)]
        entry = Catalog.PUSH_DENIED if status in _DENIED else Catalog.PUSH_REFUSED
        return [entry.found(target.place, status=status)]
    except TimeoutError:
        reason = f"no answer within {target.timeout_seconds:g} s"
    except aiohttp.ClientConnectorError as error:
        reason = shown(os_reason(error.os_error))
    except OSError as error:
        reason = shown(os_reason(error))
    except aiohttp.ClientError as error:
        reason = shown(error)
    return [Catalog.PUSH_UNREACHABLE.found(target.place, reason=reason)]
