from __future__ import annotations

import asyncio
import socket
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import ScriptedLimits, ScriptedSource, limits, rates

from quotascope.exporter.config import Config
from quotascope.exporter.errors import CannotListen
from quotascope.exporter.join import Join
from quotascope.exporter.service import Exporter, _url
from quotascope.exporter.snapshot import Snapshot


def config(**server: Any) -> Config:
    """Listen on a free loopback port."""
    given = {"address": "127.0.0.1", "port": 0, **server}
    return Config.model_validate({"server": given})


async def get(url: str) -> tuple[int, str]:
    """Status and text."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def refused(url: str) -> None:
    """Wait until nobody listens any more."""
    while True:
        try:
            await get(f"{url}/-/healthy")
        except aiohttp.ClientConnectorError:
            return
        except aiohttp.ClientConnectionError:  # accepted, but not served any more
            continue


async def ready(exporter: Exporter) -> None:
    """Wait for the first collection."""
    await exporter.snapshot()


async def test_from_start_to_end() -> None:
    """It listens, reads, serves, and releases everything at the end."""
    source, limits_source = ScriptedSource(), ScriptedLimits()
    async with Exporter(config(), [source], limits_source) as exporter:
        await ready(exporter)
        status, text = await get(f"{exporter.url}/metrics")
    assert status == 200
    assert 'kafka_quota_rules{quota_key="producer_byte_rate"} 2.0' in text
    assert (source.closed, limits_source.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(f"{exporter.url}/-/healthy")


async def test_without_admin_api() -> None:
    """Usage alone can be served."""
    async with Exporter(config(), [ScriptedSource()], None) as exporter:
        shown = await exporter.snapshot()
    assert shown.limits is None
    assert not shown.limits_health.configured


async def test_requests_under_way_are_answered_before_the_end() -> None:
    """A scrape that came before the signal gets its numbers; one that comes later finds nobody."""
    source = ScriptedSource()
    exporter = Exporter(config(), [source], None)
    await exporter.__aenter__()
    await ready(exporter)
    source.answers.clear()
    source.asked.clear()
    exporter.collection._fresh_until = 0
    scrape = asyncio.create_task(get(f"{exporter.url}/metrics"))
    await source.asked.wait()
    ending = asyncio.create_task(exporter.__aexit__())
    await refused(exporter.url)
    assert not scrape.done()
    source.answers.set()
    status, text = await scrape
    assert status == 200
    assert 'quotascope_source_up{source="broker-1"} 1.0' in text
    await ending


async def test_port_in_use_is_one_clear_error() -> None:
    """The message names address, port and reason, and nothing is left open."""
    source = ScriptedSource()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen) as caught:
            async with Exporter(config(port=port), [source], None):
                pass
    reason = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert str(caught.value) == reason
    assert source.closed == 1


async def test_address_of_another_machine_is_one_clear_error() -> None:
    """So is an address that this machine does not have (this one is for documentation)."""
    with pytest.raises(CannotListen, match="Cannot assign requested address"):
        async with Exporter(config(address="203.0.113.1"), [], None):
            pass


async def test_start_log_says_why_there_is_nothing_to_show() -> None:
    """What is missing is told once; what failed was told when it failed."""
    source = ScriptedSource()
    source.table.values[0] = float("nan")
    empty = ScriptedLimits(limits(rules={}))
    with capture_logs() as lines:
        async with Exporter(config(), [source], empty) as exporter:
            await ready(exporter)
            await asyncio.sleep(0)
    events = [line["event"] for line in lines]
    assert events[0] == "listening"
    assert any(event.startswith("No client quota is configured") for event in events)
    assert "ready" in events


async def test_first_collection_that_fails_leaves_it_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A defect is logged; the process lives and says that it is not ready."""

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError

    monkeypatch.setattr(Join, "snapshot", fail)
    with capture_logs() as lines:
        async with Exporter(config(), [ScriptedSource()], None) as exporter:
            with pytest.raises(ZeroDivisionError):
                await exporter.snapshot()
            assert (await get(f"{exporter.url}/-/ready"))[0] == 503
            assert (await get(f"{exporter.url}/-/healthy"))[0] == 200
    assert "the first collection failed" in [line["event"] for line in lines]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("0.0.0.0", "http://127.0.0.1:1"),  # noqa: S104 - compared, not bound
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
        ("10.1.2.3", "http://10.1.2.3:1"),
    ],
)
def test_url_can_be_opened(address: str, shown: str) -> None:
    """The URL in the log is one for a browser on this machine, whatever the exporter listens on."""
    assert _url(address, 1) == shown


async def test_maxima_are_kept_for_each_scraper() -> None:
    """With sampling each program, and each name that is given, has maxima of its own; people who look in between take none."""
    given = {
        **config().model_dump(include={"server"}),
        "collection": {"max_age_seconds": 0, "sample_every_seconds": 3600},
    }
    source = ScriptedSource()
    source.table = rates("1", {"alice": 0.0})
    ratio = (
        'kafka_quota_utilization_max_ratio{broker="1",client_id="",'
        'quota_type="produce",user="alice"}'
    )

    def produced(amount: float) -> None:
        source.table.values[0] = amount

    async with Exporter(Config.model_validate(given), [source], ScriptedLimits()) as it:
        metrics = f"{it.url}/metrics"
        await get(metrics)
        await get(f"{metrics}?scraper=b")
        produced(900.0)
        await it.snapshot()  # as the sampler does
        produced(100.0)
        assert f"{ratio} 0.9" in (await get(metrics))[1]
        assert f"{ratio} 0.1" in (await get(metrics))[1]
        text = (await get(f"{metrics}?scraper=b"))[1]
    assert f"{ratio} 0.9" in text
    assert "quotascope_samples_total 0.0" in text
