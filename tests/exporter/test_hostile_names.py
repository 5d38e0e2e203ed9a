"""Untrusted names, from an agent's answer to all that comes out of the exporter."""

from __future__ import annotations

import asyncio
import io
import json
from functools import cache
from typing import Final

import aiohttp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.builders.agents import client, jolokia, node
from tests.exporter.examples import exporter_of
from tests.exporter.page.parsed import Page
from tests.exporter.sources.http.hostile import body
from tests.exporter.sources.http.misbehaving import serving
from tests.strategies import HOSTILE, broken_texts, examples, texts

from quotascope.exporter.config import Config, LogConfig, LogFormat
from quotascope.exporter.discovery.build import build_sources
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.names import known_as

pytestmark = pytest.mark.usefixtures("logging_restored")

NASTY: Final = (
    *HOSTILE[1:],
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</textarea></title><!--",
    "&lt;b&gt;&#0;",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\x00",
    "\x00\x01\x7f\x85",
    "\u202eevil\u2066",
    "\ufeff\ufffe\u200b",
    "a\ud800b",
    "\udcff",
    '"} 1\nforged{a="',
    "\\",
    '\\"',
    "# HELP x",
    "level=error msg=forged",
    '{"msg": "forged"}',
    "[bold red]x[/]",
    "%s%n{0}",
    "́" * 500,
)


def shown_as(name: str) -> str:
    """Half a surrogate pair becomes a question mark, and a long name is cut."""
    return known_as(name.encode(errors="replace").decode())


names = (
    st.one_of(st.sampled_from(NASTY), texts, broken_texts)
    # both halves of a pair in a row are one character where JSON is read, as in the agent's answer
    .map(lambda name: name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))
    .filter(bool)
)


def answer(clients: list[str]) -> bytes:
    """Return the answer of Jolokia about a node with these client ids, each with a user of the same name."""
    beans = node()
    for name in clients:
        user = name.encode(errors="replace").decode()
        beans |= client("Produce", user, name, byte_rate=1.0, throttle_time=0.0)
    return jolokia(beans)


async def served(clients: list[str]) -> list[str]:
    """Return the metrics, the page and the JSON of an exporter beside a node with these clients."""
    broken = b'kafka_server_Produce_byte_rate{user="%s' % clients[0].encode(errors="replace")
    async with serving(body(answer(clients))) as url, serving(body(broken)) as broken_url:
        sources = [
            {"url": url, "dialect": "jolokia"},
            {"url": broken_url, "name": shown_as(clients[-1]), "dialect": "prometheus"},
        ]
        config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}, "sources": sources})
        async with (
            exporter_of(config, build_sources(config.agents)) as exporter,
            aiohttp.ClientSession(exporter.url) as session,
        ):
            texts = []
            everything = "?show=all&size=500"
            for path in ("/metrics", f"/{everything}", f"/api/v1/entities{everything}", "/api/v1/snapshot"):
                async with session.get(path) as response:
                    assert response.status == 200, await response.text()
                    texts.append(await response.text())
    return texts


def checked(clients: list[str], log_format: LogFormat) -> Page:
    """Send these through, and look at all that comes out; gives the page."""
    log = io.StringIO()
    configure_logs(LogConfig(format=log_format), log)
    metrics, page, *answers = asyncio.run(served(clients))
    expected = {(shown_as(name), shown_as(name)) for name in clients}
    assert pairs(metrics) == expected
    for document in answers:
        entities = json.loads(document)["entities"]
        assert {(entity["user"], entity["client_id"]) for entity in entities} == expected
    parsed = Page(page)
    assert parsed.elements <= harmless()
    assert all(char == "\n" or char.isprintable() for char in page)
    lines = log.getvalue().splitlines()
    assert any("source is down" in line for line in lines)
    assert all(map(str.isprintable, lines))
    if log_format is LogFormat.JSON:
        assert all(json.loads(line)["level"] for line in lines)
    return parsed


def pairs(metrics: str) -> set[tuple[str, str]]:
    return {
        (sample.labels["user"], sample.labels["client_id"])
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if {"user", "client_id"} <= sample.labels.keys()
    }


@cache
def harmless() -> set[tuple[str, tuple[str, ...]]]:
    """Return the elements of a page about clients with plain names, and those that isolate other names."""
    return Page(asyncio.run(served(["alice", "bob"]))[1]).elements | {("bdi", ())}


@pytest.mark.parametrize("log_format", [LogFormat.JSON, LogFormat.HUMAN])
def test_nasty_names_are_data_everywhere(log_format: LogFormat) -> None:
    """Names are data in metrics, page, JSON and log: whole, escaped, and nothing but names."""
    page = checked(list({shown_as(name): name for name in NASTY}.values()), log_format)
    assert "<script>alert(1)</script>" in page.text
    assert "[bold red]x[/]" in page.text


@pytest.mark.slow
@settings(max_examples=examples(8))
@given(st.lists(names, min_size=1, max_size=12, unique_by=shown_as))
@example(["\ud800"])
def test_any_names_are_data_everywhere(clients: list[str]) -> None:
    """Any names are data in metrics, page, JSON and log."""
    checked(clients, LogFormat.JSON)
