"""Whether the OpenTelemetry receiver takes a push."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from ..config import OtlpConfig, OtlpProtocol
from ..errors import ConfigError
from ..os_reason import os_reason
from ..otlp.push import OtlpReceiver, TlsFiles
from ..otlp.settings import receiver_of
from ..untrusted import shown
from .result import Result, Verdict

_HTTPS: Final = 443
_DENIED: Final = (401, 403)
_OK: Final = 200


async def receiver(config: OtlpConfig, environ: Mapping[str, str]) -> list[Result]:
    """
    Send a request without a single metric, which a receiver takes as it would take others; over gRPC, connect only.

    Raises ``ConfigError`` when a file or a variable cannot be used.
    """
    try:
        target = receiver_of(config, environ)
        tls = _tls(target.tls) if target.endpoint.startswith("https") else None
    except (OSError, ValueError) as error:
        raise ConfigError("otlp", [shown(error)]) from None
    try:
        async with asyncio.timeout(target.timeout_seconds):
            if target.protocol is OtlpProtocol.GRPC:
                return [await _connected(target, tls)]
            return [await _posted(target, tls)]
    except TimeoutError:
        return [
            _broken(
                f"{target.place} did not answer within {target.timeout_seconds:g} s."
            )
        ]
    except (aiohttp.ClientError, OSError) as error:
        return [_broken(f"{target.place} cannot be reached: {_reason(error)}.")]


async def _posted(target: OtlpReceiver, tls: ssl.SSLContext | None) -> Result:
    headers = {**target.headers, "Content-Type": "application/x-protobuf"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            target.endpoint,
            data=b"",
            headers=headers,
            ssl=True if tls is None else tls,
            allow_redirects=False,
        ) as answer,
    ):
        status = answer.status
    if status == _OK:
        return _result(Verdict.FINE, f"{target.place} takes pushes.")
    if status in _DENIED:
        return _broken(
            f"{target.place} refuses us: HTTP {status}.", "Check otlp.headers."
        )
    return _broken(
        f"{target.place} answers HTTP {status} instead of 200.",
        "Check otlp.endpoint and otlp.protocol: port 4318 with /v1/metrics is HTTP, 4317 is gRPC.",
    )


async def _connected(target: OtlpReceiver, tls: ssl.SSLContext | None) -> Result:
    parts = urlsplit(target.endpoint)
    port = parts.port or (_HTTPS if tls else 80)
    _, writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
    writer.close()
    return _result(
        Verdict.FINE,
        f"{target.place} accepts connections; whether it takes pushes shows with the first.",
    )


def _tls(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.ca_file)
    if files.cert_file is not None:
        context.load_cert_chain(files.cert_file, files.key_file)
    return context


def _reason(error: aiohttp.ClientError | OSError) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return shown(os_reason(error.os_error))
    return shown(os_reason(error) if isinstance(error, OSError) else error)


def _broken(
    text: str, advice: str = "Check otlp.endpoint, and that the receiver runs."
) -> Result:
    return _result(Verdict.BROKEN, text, advice)


def _result(verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(check="otlp", verdict=verdict, text=text, advice=advice)
