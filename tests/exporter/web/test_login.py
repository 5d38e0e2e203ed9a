from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.exporter.web.serving import HASH, PASSWORD, serving, web_file

from quotascope.exporter.web.access import credentials

USERS = {"basic_auth_users": {"prometheus": HASH}}


def basic(text: str | bytes) -> str:
    """The header for user:password."""
    raw = text if isinstance(text, bytes) else text.encode()
    return f"Basic {base64.b64encode(raw).decode()}"


def bearing(user: str, password: str) -> dict[str, str]:
    """The headers of somebody who says so."""
    return {"Authorization": basic(f"{user}:{password}")}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (basic("alice:a:b"), ("alice", b"a:b")),
        (basic("alïce:ü").replace("Basic", "bAsIc"), ("alïce", "ü".encode())),
        (basic(":"), ("", b"")),
        (basic(b"alice:\xff"), ("alice", b"\xff")),
        (basic(b"\xff:x"), None),
        (basic("alice"), None),
        ("Basic", None),
        ("Basic ???", None),
        ("Basic äöü", None),
        ("Bearer abc", None),
        ("", None),
    ],
)
def test_credentials(header: str, found: tuple[str, bytes] | None) -> None:
    """RFC 7617; what is not like that is nothing."""
    assert credentials(header) == found


async def test_every_path_wants_the_password(tmp_path: Path) -> None:
    """Health checks and unknown paths, too: who may not come in learns nothing."""
    right = bearing("prometheus", PASSWORD)
    async with (
        serving(web_config_file=web_file(tmp_path, **USERS)) as served,
        aiohttp.ClientSession() as session,
    ):
        for path in ("/", "/-/healthy", "/nope"):
            async with session.get(served.url + path) as answer:
                assert answer.status == 401
                challenge = answer.headers["WWW-Authenticate"]
                assert challenge == 'Basic realm="quotascope", charset="UTF-8"'
        async with session.get(served.url + "/-/healthy", headers=right) as answer:
            assert answer.status == 200


async def test_wrong_passwords_are_logged_once_a_minute(tmp_path: Path) -> None:
    """With the address, and neither with the name nor with the password."""
    with capture_logs() as lines:
        async with (
            serving(web_config_file=web_file(tmp_path, **USERS)) as served,
            aiohttp.ClientSession() as session,
        ):
            for user in ("prometheus", "hunter2"):
                wrong = bearing(user, "hunter2")
                async with session.get(served.url, headers=wrong) as answer:
                    assert answer.status == 401
                    assert "hunter2" not in await answer.text()
    (line,) = [line for line in lines if line["event"] == "logins were refused"]
    assert line["address"] == "127.0.0.1"
    assert "hunter2" not in str(lines)


async def test_users_come_and_go_without_a_restart(tmp_path: Path) -> None:
    """The file is looked at for each request; a broken one leaves those that there were."""
    file = web_file(tmp_path, **USERS)
    auth = bearing("prometheus", PASSWORD)

    async def status(url: str, auth: dict[str, str] | None = None) -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=auth) as it,
        ):
            return it.status

    with capture_logs() as lines:
        async with serving(web_config_file=file) as served:
            assert await status(served.url, auth) == 200
            web_file(tmp_path, basic_auth_users={"somebody.else": HASH})
            assert await status(served.url, auth) == 401
            file.write_text("basic_auth_users: [")
            assert await status(served.url) == 401
            web_file(tmp_path, basic_auth_users={})
            assert await status(served.url) == 401
    events = [line["event"] for line in lines]
    assert sum("the last good one stays" in event for event in events) == 2


async def test_too_many_logins_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who cannot be checked now may try again soon."""
    held = asyncio.Event()

    async def slow(*_: object) -> bool:
        await held.wait()
        return False

    monkeypatch.setattr("quotascope.exporter.web.passwords.asyncio.to_thread", slow)
    wrong = bearing("prometheus", "wrong")
    async with (
        serving(web_config_file=web_file(tmp_path, **USERS)) as served,
        aiohttp.ClientSession() as session,
    ):

        async def ask() -> tuple[int, str | None]:
            async with session.get(served.url, headers=wrong) as answer:
                held.set()
                return answer.status, answer.headers.get("Retry-After")

        found = await asyncio.gather(*(ask() for _ in range(6)))
    assert sorted(found, key=str) == [(401, None)] * 5 + [(503, "1")]
