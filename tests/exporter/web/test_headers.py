from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.exporter.web.serving import exchange, serving, web_file

from quotascope.exporter.web.access import DEFAULTS


async def own_policy(_request: web.Request) -> web.Response:
    """A page that knows better than the default."""
    policy = {"Content-Security-Policy": "default-src 'self'"}
    return web.Response(text="page", headers=policy)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /-/healthy HTTP/1.1", b"200"),
        (b"GET /nope HTTP/1.1", b"404"),
        (b"POST / HTTP/1.1", b"405"),
        (b"NONSENSE", b"400"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1", b"400"),
    ],
)
async def test_every_answer_carries_them(request_line: bytes, status: bytes) -> None:
    """Errors, and answers to what is no HTTP, as well; which software it is, none of them tells."""
    head = request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with serving() as served:
        answer = await exchange(served.url, head)
    assert answer.split()[1] == status
    lines = answer.decode().split("\r\n")
    for name, value in DEFAULTS.items():
        assert f"{name}: {value}" in lines
    assert "aiohttp" not in answer.decode()
    assert "Python" not in answer.decode()


async def test_a_page_has_its_own_policy_unless_the_file_says_otherwise(
    tmp_path: Path,
) -> None:
    """The operator's word is the last; an empty one is none."""
    headers = {"X-Frame-Options": "sameorigin", "Content-Security-Policy": ""}
    file = web_file(tmp_path, http_server_config={"headers": headers})
    async with (
        serving(own_policy, web_config_file=file) as served,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(served.url) as answer:
            assert answer.headers["Content-Security-Policy"] == "default-src 'self'"
            assert answer.headers.getall("X-Frame-Options") == ["sameorigin"]
        headers["Content-Security-Policy"] = "default-src 'none'"
        web_file(tmp_path, http_server_config={"headers": headers})
        async with session.get(served.url) as answer:
            policies = answer.headers.getall("Content-Security-Policy")
            assert policies == ["default-src 'none'"]
