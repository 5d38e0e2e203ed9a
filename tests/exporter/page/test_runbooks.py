"""The runbooks that the exporter serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import make_mocked_request
from tests.alerts.runbook_parts import HEADINGS
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of, limits
from tests.exporter.page.parsed import Page

from quotascope.alerts.runbook import runbooks
from quotascope.exporter.app import Exporter
from quotascope.exporter.config import Config
from quotascope.exporter.page.filling import filled
from quotascope.exporter.page.runbooks import Runbooks
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

TEXTS = dict(runbooks())
HOSTILE = """\
# x

<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) `<b>` &lt;i&gt;
"""


@pytest.fixture
async def exporter(request: pytest.FixtureRequest) -> AsyncIterator[Exporter]:
    """Run an exporter with the runbooks that a test names."""
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
    """The index has a link to every runbook, each with its parts and commands and without a script."""
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
    """The page's footer has a link to the runbooks only where they are served."""
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
    assert not [link for link in page.values("a", "href") if "script" in link]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


@pytest.mark.parametrize("exporter", [TEXTS], indirect=True, ids=["ours"])
async def test_a_runbook_has_the_names_of_the_alert(exporter: Exporter) -> None:
    """
    Commands and queries of a runbook have the names of the alert, whatever they are.

    No name of an example is left, and no command for a client-id that the alert lacks.
    """
    hostile = 'it\'s "x"\n```'
    _, _, text = await get(f"{exporter.url}/runbooks/KafkaQuotaProduceThrottled?{urlencode({'user': hostile})}")
    page = Page(text)
    assert page.headings == ["KafkaQuotaProduceThrottled", *HEADINGS]
    assert "alice" not in page.text
    assert "app1" not in page.text
    assert 'kafka_quota_produce_limit_bytes_per_second{user="it\'s \\"x\\"\\n```"}' in page.text
    assert "quotascope explain --user $'it\\'s \"x\"\\n```' --config" in page.text
    assert "No throttle of it goes on" in page.text


KEY = "producer_byte_rate"
TO_SET = (
    "sh\nkafka-configs.sh --alter --add-config 'producer_byte_rate=20971520' --entity-type users --entity-name alice\n"
)
TO_REMOVE = (
    "sh\nkafka-configs.sh --alter --delete-config 'producer_byte_rate' --entity-type users --entity-name alice\n"
)


@pytest.mark.parametrize(
    ("rules", "raised", "removed"),
    [
        # of the user
        (
            {QuotaEntity("bob"): 1e8},
            f"'{KEY}=200000000' --entity-type users --entity-name bob",
            " users --entity-name bob",
        ),
        # a default: raised for this user alone
        (
            {QuotaEntity(DEFAULT): 100.0},
            f"'{KEY}=200' --entity-type users --entity-name bob",
            " users --entity-default",
        ),
        # without rules known nothing but the names changes
        (None, f"'{KEY}=20971520' --entity-type users --entity-name bob", " users --entity-name bob"),
    ],
)
def test_commands_are_for_the_rule_that_applies(
    rules: dict[QuotaEntity, float] | None, raised: str, removed: str
) -> None:
    """Commands are for the rule that applies: no raise lowers a limit, and no overruled rule is set."""
    configured = None if rules is None else limits(rules={QuotaType.PRODUCE: QuotaRules(rules)})
    text = filled(f"```{TO_SET}```\n```{TO_REMOVE}```\n", "bob", None, configured)
    assert raised in text
    assert text.splitlines()[-2].endswith(removed)


def test_a_pair_has_the_command_of_its_rule_once() -> None:
    """The runbook has a command for each kind of entity."""
    configured = limits(rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(DEFAULT, DEFAULT): 1e6})})
    lines = TO_SET + TO_SET.removeprefix("sh\n").replace("alice", "alice --entity-type clients --entity-name app1")
    text = filled(f"```{lines}```\n", "bob", "spark 1", configured)
    (command,) = (line for line in text.splitlines() if "--alter" in line)
    assert command.endswith(
        "=2000000' --entity-type users --entity-name bob --entity-type clients --entity-name 'spark 1'"
    )


async def test_the_index_says_what_each_is_about() -> None:
    """The index has severity and summary of each runbook that has them."""
    handlers = Runbooks({"x": "# x", "y": "# y"}, {"x": ("warning", "Clients <wait>.")})
    text = (await handlers.index(make_mocked_request("GET", "/runbooks/"))).text or ""
    assert "x (warning): Clients <wait>." in Page(text).text
