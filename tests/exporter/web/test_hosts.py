from __future__ import annotations

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.exporter.web.serving import serving

from quotascope.exporter.web.access import AccessPolicy, _is_loopback, host_name
from quotascope.exporter.web.settings import WebSettings


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("quotascope.corp:9749", "quotascope.corp"),
        ("LOCALHOST", "localhost"),
        ("quotascope.corp.", "quotascope.corp"),
        ("[::1]:9749", "::1"),
        ("127.0.0.1:9749", "127.0.0.1"),
        ("", ""),
    ],
)
def test_host_name(header: str, name: str) -> None:
    """Without port, brackets and the dot of the root."""
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - compared, not bound
        ("quotascope.corp", False),
    ],
)
def test_loopback(address: str, *, alone: bool) -> None:
    """Whether only this machine reaches it."""
    assert _is_loopback(address) is alone


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("", "rebound.example", 421),
        ("", "localhost:1234", 200),
        ("", "[::1]:1", 200),
        ("quotascope.corp,other.corp", "Quotascope.corp:80", 200),
        ("quotascope.corp", "rebound.example", 421),
    ],
)
async def test_a_page_from_elsewhere_reads_nothing_here(
    allowed: str, host: str, status: int
) -> None:
    """On a loopback address a browser that was told that its name is here is refused."""
    with capture_logs() as lines:
        async with (
            serving(allowed_hosts=allowed) as served,
            aiohttp.ClientSession(headers={"Host": host}) as session,
            session.get(served.url) as answer,
        ):
            assert answer.status == status
    refused = [line["host"] for line in lines if "another host" in line["event"]]
    assert refused == (["rebound.example"] if status == 421 else [])


async def test_anywhere_else_any_name_will_do() -> None:
    """Nobody knows what an exporter is called in a cluster, unless they are told."""
    everywhere = "0.0.0.0"  # noqa: S104 - compared, not bound
    assert AccessPolicy(WebSettings, 1, everywhere)._any_host
    assert not AccessPolicy(WebSettings, 1, everywhere, ["quotascope.corp"])._any_host
