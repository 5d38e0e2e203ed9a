"""
An HTTP server that does what no real agent can be brought to do on request.

It is not a stand-in for an agent: everything that a real agent answers is recorded, or asked of a
real one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Behavior = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(behave: Behavior) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, EOFError):  # had enough of it
                await behave(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        server.close()
        await server.wait_closed()


def answering(*parts: bytes) -> Behavior:
    """Read a request, write these bytes, and hang up."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
        await writer.drain()

    return behave


def with_status(status: str, *headers: str) -> Behavior:
    lines = (f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", "")
    return answering("\r\n".join(lines).encode())


async def silence(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,  # noqa: ARG001 - the shape of a behavior
) -> None:
    await reader.read()
