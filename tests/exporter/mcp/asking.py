"""An assistant's client, that of the official SDK, which starts the command and talks to it as an assistant does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from tests.commands import COMMAND


@asynccontextmanager
async def assistant(exporter: str, *options: str) -> AsyncIterator[Client]:
    """Yield a client whose server asks this exporter."""
    arguments = ["mcp", "--exporter", exporter, *options]
    async with Client(stdio_client(StdioServerParameters(command=str(COMMAND), args=arguments))) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    """Return the text of a result, which has nothing else for people."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """Return the document of a tool's result, which its text repeats."""
    assert not result.is_error, text_of(result)
    answer: dict[str, Any] = result.structured_content
    assert json.loads(text_of(result)) == answer
    return answer


async def reason(client: Client, tool: str, **arguments: object) -> str:
    """The reason why a tool has no answer."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)
