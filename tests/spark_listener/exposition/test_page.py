import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integration import web
from tests.integration.eventually import eventually
from tests.spark_listener.exposition.jobs import job

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.exposition import page as module
from quotascope.spark_listener.exposition.page import DriverPage
from quotascope.spark_listener.job import JobSnapshot

Shown = tuple[DriverPage, str]


@contextmanager
def showing(snapshots: Callable[[], Sequence[JobSnapshot]] = lambda: [job()]) -> Iterator[Shown]:
    """Yield the page of jobs on a free port, and its URL."""
    page = DriverPage(JobCollector(snapshots), "127.0.0.1", 0)
    try:
        yield page, f"http://127.0.0.1:{page.port}/metrics"
    finally:
        page.close()


@pytest.fixture
def shown() -> Iterator[Shown]:
    with showing() as shown:
        yield shown


def test_it_shows_the_job(shown: Shown) -> None:
    """The page has Prometheus's text format at /metrics, and a link to it elsewhere."""
    _, url = shown
    answer = web.ask(f"{url}?x=1")
    assert answer.status == 200
    assert "version=" in answer.headers["Content-Type"]
    assert 'spark_listener_events_total{app="nightly"} 1000.0' in answer.text
    elsewhere = web.ask(url.removesuffix("metrics"))
    assert elsewhere.status == 404
    assert "/metrics" in elsewhere.text


@contextmanager
def opened(page: DriverPage, count: int) -> Iterator[list[socket.socket]]:
    """Connections to a page, with buffers that hold little."""
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.socket()) for _ in range(count)]
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", page.port))
        yield connections


def are_closed(connections: list[socket.socket]) -> None:
    """Assert that the page has ended each of the connections."""
    for connection in connections:
        connection.settimeout(0)
        try:
            assert connection.recv(1) == b""
        except BlockingIOError:
            raise AssertionError("it is open") from None
        except ConnectionError:
            continue


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_text",
    ["", "GET /metrics HTTP/1.1\r\nX: ", "GET /metrics HTTP/1.1\r\n\r\n"],
    ids=["silent", "dripping", "not reading"],
)
def test_slow_clients_do_not_keep_scrapes_out(request_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many slow clients as places, which send or read next to nothing, do not block scrapes."""
    # answers for all of them may take a busy machine longer than ten
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 60.0)
    clients = [ClientTotals(Client("u" * 20_000, str(number), "read")) for number in range(100)]
    large = replace(job(), throttles=tuple(("", client) for client in clients))
    with showing(lambda: [large]) as (page, url), opened(page, 32) as connections:
        for connection in connections:
            connection.sendall(request_text.encode())
        for _ in range(5):
            for connection in connections:
                with suppress(OSError):
                    connection.send(b"x")
            assert web.ask(url).status == 200


def test_a_client_that_takes_too_long_is_ended(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is ended however many bytes it sends, though its place is not needed."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)

    def drip() -> None:
        with suppress(ConnectionError):
            connection.send(b"x")
            raise AssertionError("it is open")

    with opened(shown[0], 1) as (connection,):
        eventually(drip)


class Held:
    """Books that are read when a test lets them be."""

    def __init__(self) -> None:
        self._asked = threading.Semaphore(0)
        self.go_on = threading.Event()

    def snapshots(self) -> list[JobSnapshot]:
        self._asked.release()
        assert self.go_on.wait(60)
        return [job()]

    def asked(self, times: int) -> None:
        for _ in range(times):
            assert self._asked.acquire(timeout=60)


@pytest.mark.slow
def test_an_answer_that_is_being_made_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The connection keeps its place however many clients come meanwhile.

    A further client waits, and is turned away in the end.
    """
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 60.0)
    blocked = Held()
    with showing(blocked.snapshots) as (page, url), ThreadPoolExecutor(16) as pool:
        scrapes = [pool.submit(web.ask, url) for _ in range(15)]
        blocked.asked(15)
        monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
        with opened(page, 20) as idle:
            eventually(lambda: are_closed(idle[:-1]))
            monkeypatch.setattr(module, "_PATIENCE_SECONDS", 60.0)
            scrapes.append(pool.submit(web.ask, url))
            blocked.asked(1)
            monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
            with opened(page, 1) as refused:
                eventually(lambda: are_closed(refused))
            blocked.go_on.set()
            assert [scrape.result().status for scrape in scrapes] == [200] * 16


def test_a_scrape_waits_while_all_places_have_an_answer_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape beyond all places is answered when the first of the other answers is done."""
    blocked, waits = Held(), threading.Event()
    end = module._Server._end

    def ended(server: module._Server, **options: Any) -> int:
        count = end(server, **options)
        if "limit" in options and not count:
            waits.set()
        return count

    monkeypatch.setattr(module._Server, "_end", ended)
    with showing(blocked.snapshots) as (_, url), ThreadPoolExecutor(17) as pool:
        scrapes = [pool.submit(web.ask, url) for _ in range(16)]
        blocked.asked(16)
        scrapes.append(pool.submit(web.ask, url))
        waiting = waits.wait(60)
        blocked.go_on.set()
        assert waiting
        assert [scrape.result().status for scrape in scrapes] == [200] * 17


def test_driver_without_threads_to_spare_answers_later(shown: Shown) -> None:
    """A scrape for which no thread could be started takes no place."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    _, url = shown
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(20):
            with pytest.raises(AssertionError, match="no answer"):
                web.ask(url)
    assert web.ask(url).status == 200


def test_books_that_cannot_be_read_are_an_error_of_that_scrape_only(capsys: pytest.CaptureFixture[str]) -> None:
    """An error in the books is a 500 for that scrape, and the next one gets a page."""
    books: list[list[JobSnapshot] | Exception] = [[job()], RuntimeError("geheim")]

    def snapshots() -> list[JobSnapshot]:
        snapshot = books.pop()
        if isinstance(snapshot, Exception):
            raise snapshot
        return snapshot

    with showing(snapshots) as (_, url):
        answers = [web.ask(url) for _ in range(2)]
    assert [answer.status for answer in answers] == [500, 200]
    assert "geheim" not in answers[0].text + capsys.readouterr().err


def test_all_addresses_and_ipv6() -> None:
    """An empty address means all addresses, and an address of IPv6 works."""
    everywhere = DriverPage(JobCollector(list), "", 0)
    web.ask(f"http://127.0.0.1:{everywhere.port}/metrics")
    everywhere.close()
    six = DriverPage(JobCollector(list), "::1", 0)
    assert web.ask(f"http://[::1]:{six.port}/metrics").status == 200
    six.close()


def test_a_slow_answer_is_not_its_clients_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose answer took a minute to make has its whole patience left to take it, and no more."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    ours, theirs = socket.socketpair()
    with ours, theirs, module._Server("127.0.0.1", 0) as server:
        server._open[ours] = module._Connection(since=0.0)
        with server.computing(ours):
            now[0] = 60.0
            server.service_actions()
        server.service_actions()
        assert ours in server._open
        now[0] = 60.0 + module._PATIENCE_SECONDS + 1
        server.service_actions()
        assert ours not in server._open
