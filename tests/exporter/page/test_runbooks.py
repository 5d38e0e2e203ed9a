"""The runbooks that the exporter serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest
from aiohttp import ClientSession
from tests.alerts.runbook_parts import HEADINGS
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of
from tests.exporter.page.test_page import Page

from quotascope.alerts.runbook import runbooks
from quotascope.exporter.app import Exporter
from quotascope.exporter.config import Config

TEXTS = dict(runbooks())
HOSTILE = """\
# x

<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) `<b>` &lt;i&gt;
"""


@pytest.fixture
async def exporter(request: pytest.FixtureRequest) -> AsyncIterator[Exporter]:
    """One with the runbooks that a test names."""
    texts: Mapping[str, str] | None = request.param
    config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}})
    async with exporter_of(config, [ScriptedSource()], ScriptedLimits(), runbooks=texts) as started:
        yield started


async def get(url: str) -> tuple[int, str, str]:
    async with ClientSession() as session, session.get(url) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return answer.status, policy, await answer.text()


@pytest.mark.parametrize("exporter", [TEXTS], indirect=True, ids=["ours"])
async def test_every_runbook_is_a_page(exporter: Exporter) -> None:
    """The index leads to all of them; each has its parts, its commands and no script."""
    for path in ("/runbooks/", "/runbooks"):  # one leads to the other
        status, policy, text = await get(f"{exporter.url}{path}")
        assert status == 200
    assert "script" not in policy
    index = Page(text)
    assert {*index.values("a", "href")} >= {*TEXTS}
    for name, markdown in TEXTS.items():
        status, policy, text = await get(f"{exporter.url}/runbooks/{name}")
        page = Page(text)
        assert (status, "script" in policy) == (200, False)
        assert page.headings == [name, *HEADINGS]
        assert "script" not in page.tags
        assert page.tags.count("pre") == markdown.count("```") / 2
        assert "```" not in page.text


@pytest.mark.parametrize("exporter", [TEXTS, None], indirect=True, ids=["ours", "none"])
async def test_what_is_not_there_is_not_found(exporter: Exporter) -> None:
    """No name of a file leads out of the runbooks."""
    for path in ("nothing", "..%2f..%2fpyproject.toml", "KafkaQuotaNearLimit.md"):
        status, _, text = await get(f"{exporter.url}/runbooks/{path}")
        assert status == 404
        assert "see / for what there is" in text


@pytest.mark.parametrize("exporter", [TEXTS, None], indirect=True, ids=["ours", "none"])
async def test_the_page_leads_to_them_where_they_are_served(exporter: Exporter) -> None:
    """Its footer has no link that leads nowhere."""
    _, _, text = await get(f"{exporter.url}/")
    status, _, _ = await get(f"{exporter.url}/runbooks/")
    assert ("runbooks/" in Page(text).values("a", "href")) is (status == 200)


@pytest.mark.parametrize("exporter", [{"x": HOSTILE}], indirect=True, ids=["hostile"])
async def test_html_in_a_runbook_is_text(exporter: Exporter) -> None:
    """A runbook adds words to its page, no elements and no addresses that run something."""
    _, _, text = await get(f"{exporter.url}/runbooks/x")
    page = Page(text)
    assert {"script", "img", "b", "i"}.isdisjoint(page.tags)
    assert "<script>alert(1)</script> <img src=x onerror=alert(1)>" in page.text
    assert not [each for each in page.values("a", "href") if "script" in each]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
