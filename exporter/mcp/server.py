"""
The server: reads requests from standard input and answers on standard output, with the protocol's official SDK.

It has tools only, and none of them changes anything. A failure is a result with ``isError`` and the reason, which the
model reads; the protocol's own errors are for clients that break it.
"""

from __future__ import annotations

import json
import time
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from ..errors import InvalidQuery, SourceError
from ..exposition import own_version
from ..sources.peer import HttpTarget
from ..untrusted import shown
from .answers import ExporterApi, visible
from .tools import INSTRUCTIONS, QUESTIONS

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_BY_NAME = {question.name: question for question in QUESTIONS}


async def serve(target: HttpTarget) -> None:
    """
    Answer an assistant about an exporter until standard input ends.

    The exporter need not run when this starts: until it does, answers give the reason.
    """
    api = ExporterApi(target)
    async with stdio_server() as (requests, responses):
        server = server_of(api)
        await server.run(requests, responses, server.create_initialization_options())


def server_of(api: ExporterApi) -> Server[Any]:
    """Return the server with its tools."""

    async def list_tools(_context: object, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools())

    async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
        return await call_result(api, params.name, params.arguments or {})

    return Server(
        "quotascope",
        version=own_version(),
        title="quotascope",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def tools() -> list[Tool]:
    """Return all tools as clients see them."""
    return [
        Tool(
            name=question.name,
            title=question.title,
            description=question.description,
            input_schema=question.input_schema,
            output_schema=question.output_schema,
            annotations=_READS,
        )
        for question in QUESTIONS
    ]


async def call_result(api: ExporterApi, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Return the answer of a tool, or the reason why there is none."""
    if (question := _BY_NAME.get(name)) is None:
        return _failed(f"there is no tool {shown(name)!r}: there are {', '.join(_BY_NAME)}")
    try:
        answer = await question.ask(api, arguments, time.time())
    except (InvalidQuery, SourceError) as error:
        return _failed(str(error))
    # clients that show no structured content show the text
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(answer))], structured_content=answer)


def _failed(reason: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=visible(reason))], is_error=True)
