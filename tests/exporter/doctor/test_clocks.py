from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.examples import NOW

from quotascope.exporter.config import SourceConfig
from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor.clocks import Reading, clocks, compared


def reading(off: float) -> Reading:
    """An answer from a clock that is so many seconds ahead, which took half a second."""
    date = formatdate(NOW + off, usegmt=True)
    return Reading(source="a", date=date, asked_at=NOW, answered_at=NOW + 0.5)


@pytest.mark.parametrize("off", [-2.0, 0.0, 2.0])
def test_whole_seconds_and_slow_answers_are_no_skew(off: float) -> None:
    """The header has no fractions, and an answer takes its time."""
    (result,) = compared(reading(off))
    assert result.verdict is Verdict.FINE


@pytest.mark.parametrize(
    ("off", "text"),
    [
        (-60.0, "Is 59.0 s behind this machine."),
        (60.0, "Is 59.5 s ahead of this machine."),
    ],
)
def test_skew_is_told(off: float, text: str) -> None:
    """At least how much it is, and in which direction."""
    (result,) = compared(reading(off))
    assert (result.verdict, result.text) == (Verdict.LOOK, text)


@pytest.mark.parametrize(
    "date", [None, "", "soon", "Mon, 99 Foo 2026", f"Mon, 01 Jan {10**20} 00:00:00 GMT"]
)
def test_agents_that_do_not_tell_are_left_out(date: str | None) -> None:
    """Neither is it wrong, nor known to be right."""
    assert list(compared(Reading(source="a", date=date))) == []


async def test_any_answer_tells_the_time() -> None:
    """Without credentials, even one that refuses; one that does not answer at all is told elsewhere."""
    seen: list[str | None] = []

    async def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        date = formatdate(NOW + 100, usegmt=True)
        return web.Response(status=401, headers={"Date": date})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with TestServer(app) as server:
        url = str(server.make_url("/jolokia"))
        auth = {"username": "me", "password": "pw"}
        there = SourceConfig.model_validate({"url": url, "basic_auth": auth})
        nobody = SourceConfig(url="http://127.0.0.1:1/")
        (result,) = await clocks([there, nobody], lambda: NOW)
    assert (result.subject, result.verdict) == (there.label, Verdict.LOOK)
    assert seen == [None]


async def test_a_bad_tls_file_is_one_sources_own(tmp_path: Path) -> None:
    """Its clock cannot be asked for; those of the others are compared all the same."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(headers={"Date": formatdate(NOW, usegmt=True)})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    async with TestServer(app) as server:
        good = SourceConfig.model_validate({"url": str(server.make_url("/"))})
        tls = {"ca_file": bad}
        broken = SourceConfig.model_validate({"url": "https://127.0.0.1:1", "tls": tls})
        first, second = await clocks([broken, good], lambda: NOW)
    assert (first.subject, first.verdict) == (broken.label, Verdict.LOOK)
    assert str(bad) in first.text
    assert (second.subject, second.verdict) == (good.label, Verdict.FINE)
