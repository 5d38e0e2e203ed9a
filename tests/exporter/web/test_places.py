"""The requests that get a place when there are too many, over sockets of several loopback addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import bcrypt
import pytest
from aiohttp import web
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.exporter.web.serving import HASH, PASSWORD, serving

from quotascope.exporter.web.passwords import Passwords, TooManyLogins
from quotascope.exporter.web.places import KNOWN_SECONDS, Answers, Place, Places, Refusal, surroundings

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def nothing() -> None:
    """Cut nothing."""


@asynccontextmanager
async def not_reading(url: str, address: str, number: int) -> AsyncIterator[None]:
    """Connections from an address that ask for the metrics and take nothing."""
    port = int(url.rpartition(":")[2])
    writers = []
    for _ in range(number):
        _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), limit=1)
        writer.write(SCRAPE)
        writers.append(writer)
    async with aiohttp.ClientSession() as session:  # its request has no limit, and comes after all others
        await session.get(f"{url}/-/healthy")
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def scrape(url: str, address: str = "127.0.0.1") -> int:
    """Status of a scrape that is taken whole."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0), force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"{url}/metrics") as answer:
        await answer.read()
        return answer.status


async def large(_request: web.Request) -> web.Response:
    """Return an answer that no buffer of a socket holds."""
    return web.Response(body=bytes(16 << 20))


async def test_one_client_does_not_take_all_places() -> None:
    """
    Of 60 connections that do not read their answers, a quarter of the places is held.

    Scrapes of another client are answered, each refusal counted and the first logged.
    """

    async def answer(request: web.Request) -> web.Response:
        return await large(request) if request.remote == "127.0.0.2" else web.Response(text="answered")

    with capture_logs() as lines:
        async with serving(answer) as served:
            served.server._access._answers.most_bytes = 1 << 30  # so that the places are what is scarce
            async with not_reading(served.url, "127.0.0.2", 60):
                statuses = [await scrape(served.url) for _ in range(45)]
                refused = served.server.refused
    assert statuses == [200] * 45
    assert refused["one_client"] == 50
    assert [line["address"] for line in lines if "one client has its part" in line["event"]] == ["127.0.0.2"]


async def test_a_scraper_that_is_known_keeps_its_place() -> None:
    """
    Forty places are held by forty addresses.

    Who scraped lately is answered, and who comes first then is refused with a line in the log.
    """
    with capture_logs() as lines:
        async with AsyncExitStack() as stack:
            small = web.Response
            held = asyncio.Event()

            async def answer(request: web.Request) -> web.Response:
                if request.remote not in {"127.0.0.1", "127.0.9.9"}:
                    await held.wait()
                return small(text="answered")

            served = await stack.enter_async_context(serving(answer))
            assert await scrape(served.url) == 200
            for number in range(40):
                await stack.enter_async_context(not_reading(served.url, f"127.0.1.{number + 1}", 1))
            statuses = [await scrape(served.url) for _ in range(45)]
            stranger = await scrape(served.url, "127.0.9.9")
            refused = served.server.refused
            held.set()
    assert statuses == [200] * 45
    assert stranger == 503
    assert refused["busy"] == 1
    assert [line["address"] for line in lines if "all places are taken" in line["event"]] == ["127.0.9.9"]


async def test_answers_that_nobody_takes_do_not_fill_the_memory() -> None:
    """
    Forty slow clients of ten addresses hold no more than the bound together.

    The newest answer is the last to give way.
    """
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(large))
        answers = served.server._access._answers
        for number in range(10):
            await stack.enter_async_context(not_reading(served.url, f"127.0.2.{number + 1}", 4))
            assert answers.held_bytes <= answers.most_bytes
        assert await scrape(served.url) == 200
        refused = served.server.refused
    assert refused["bytes"] >= 40 - answers.most_bytes // (16 << 20)


def test_which_answer_gives_way() -> None:
    """
    Among unknown clients, the oldest answer of the one with the most bytes gives way.

    The last two answers may exceed the maximum of all.
    """
    cut: list[str] = []

    def place(client: str, *, is_known: bool = False) -> Place:
        return Place(client, is_known, lambda: cut.append(client))

    answers = Answers(most_bytes=100)
    for client, is_known, length in (("a", True, 60), ("b", False, 20), ("c", False, 20)):
        assert answers.hold(place(client, is_known=is_known), bytes(length)) == 0
    assert answers.hold(place("d"), bytes(20)) == 1
    assert answers.hold(place("e"), bytes(200)) == 2
    assert cut == ["b", "c", "d"]
    assert answers.hold(place("f", is_known=True), bytes(200)) == 1
    assert cut[-1] == "e"


def test_an_answer_that_is_shared_counts_once() -> None:
    """An answer that scrapers share counts once, and gives way after answers of single clients."""
    cut: list[str] = []

    def place(client: str) -> Place:
        return Place(client, is_known=False, cut=lambda: cut.append(client))

    answers, page = Answers(most_bytes=100), bytes(60)
    places = [place(client) for client in "abcd"]
    assert [answers.hold(each, page) for each in places] == [0, 0, 0, 0]
    assert answers.held_bytes == 60
    assert answers.hold(place("e"), bytes(30)) == 0
    assert answers.hold(place("f"), bytes(20)) == 1
    assert cut == ["e"]
    for each in places:
        answers.release(each)
    assert answers.held_bytes == 20


def test_who_is_known() -> None:
    """A client is known for a while after it read an answer; new clients displace those with the fewest answers."""
    now_seconds = 0.0
    places = Places(8, lambda: now_seconds)

    def once(client: str) -> None:
        place = places.take(client, nothing)
        assert isinstance(place, Place)
        places.leave(place, answered=True)

    def is_known(client: str) -> bool:
        place = places.take(client, nothing)
        if isinstance(place, Place):
            places.leave(place, answered=False)
        return isinstance(place, Place) and place.is_known

    for _ in range(3):
        once("10.0.0.1")
    for number in range(100):
        once(f"10.1.0.{number}")
    assert len(places._known) == 8
    assert is_known("10.0.0.1")
    assert is_known("10.1.0.99")
    assert not is_known("10.1.0.0")
    now_seconds = KNOWN_SECONDS + 1
    assert not is_known("10.0.0.1")


def test_a_client_that_is_known_has_one_place_more() -> None:
    """
    A known client gets one place when all are taken, and no second.

    Its part of the places is no larger than others'.
    """
    places = Places(4)
    place = places.take("10.0.0.1", nothing)
    assert isinstance(place, Place)
    places.leave(place, answered=True)
    for number in range(4):
        assert isinstance(places.take(f"10.1.0.{number}", nothing), Place)
    assert isinstance(places.take("10.0.0.1", nothing), Place)
    assert places.take("10.0.0.1", nothing) is Refusal.BUSY
    assert len(places) == 5


@pytest.mark.parametrize(
    ("network", "wider"),
    [
        ("10.1.2.3", ("10.1.2.0/24", "10.1.0.0/16", "10.0.0.0/8")),
        ("2001:db8:1:2::/64", ("2001:db8:1::/48", "2001:db8::/32", "2001::/16")),
        ("", ()),
    ],
)
def test_networks_around_an_address(network: str, wider: tuple[str, ...]) -> None:
    """An address has three networks, the nearest first, and a text that is no address has none."""
    assert surroundings(network) == wider


async def test_a_right_password_beside_a_thousand_addresses_that_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After a restart nobody is known.

    A repeated login is checked before two dozen of a thousand guesses, each from an address of its own.
    """
    checks: list[bytes] = []
    real = bcrypt.checkpw

    def counted(password: bytes, hashed: bytes) -> bool:
        checks.append(password)
        return real(password, hashed)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    store, users, guessing = Passwords(), {"prometheus": SecretStr(HASH)}, True

    async def guess(number: int) -> None:
        address = f"{20 + number % 4}.{number % 7}.{number % 250}.{number % 200}"
        while guessing:
            try:
                await store.accept(users, "prometheus", b"%d" % len(checks), address)
            except TooManyLogins:
                await asyncio.sleep(0.01)

    guesses = [asyncio.create_task(guess(number)) for number in range(1_000)]
    while len(checks) < 4:  # noqa: ASYNC110
        await asyncio.sleep(0)
    checks_before, accepted = len(checks), False
    while not accepted:
        try:
            accepted = await store.accept(users, "prometheus", PASSWORD.encode(), "10.0.0.5")
        except TooManyLogins:
            await asyncio.sleep(0.01)
    wrong_before = len(checks) - checks_before
    guessing = False
    await asyncio.gather(*guesses)
    assert wrong_before <= 24
