import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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


@pytest.fixture
def page() -> Iterator[DriverPage]:
    """The page of a job on a free port."""
    page = DriverPage(JobCollector(lambda: [job()]), "127.0.0.1", 0)
    try:
        yield page
    finally:
        page.close()


def test_it_shows_the_job(page: DriverPage) -> None:
    """Prometheus's text format at /metrics, and elsewhere the way there."""
    answer = web.ask(f"http://127.0.0.1:{page.port}/metrics?x=1")
    assert answer.status == 200
    assert "version=" in answer.headers["Content-Type"]
    assert 'spark_listener_events_total{app="nightly"} 1000.0' in answer.text
    elsewhere = web.ask(f"http://127.0.0.1:{page.port}/")
    assert elsewhere.status == 404
    assert "/metrics" in elsewhere.text


def opened(page: DriverPage, count: int) -> list[socket.socket]:
    """Connections to a page, with buffers that hold little."""
    connections = []
    for _ in range(count):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", page.port))
        connections.append(connection)
    return connections


def scrapes(page: DriverPage, drip: Callable[[], None]) -> list[int]:
    """The statuses of scrapes, between which others go on."""
    url = f"http://127.0.0.1:{page.port}/metrics"
    statuses = []
    for _ in range(5):
        drip()
        statuses.append(web.ask(url).status)
    return statuses


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_",
    ["", "GET /metrics HTTP/1.1\r\nX: ", "GET /metrics HTTP/1.1\r\n\r\n"],
    ids=["silent", "dripping", "not reading"],
)
def test_slow_clients_do_not_keep_scrapes_out(request_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that say nothing, that send a byte now and then, or that take no answer, twice as many as there are places."""
    monkeypatch.setattr(
        module, "_PATIENCE_SECONDS", 60.0
    )  # answers for all of them may take a busy machine longer than ten
    clients = [ClientTotals(Client("u" * 20_000, str(number), "read")) for number in range(100)]
    large = replace(job(), throttles=tuple(("", each) for each in clients))
    slow = DriverPage(JobCollector(lambda: [large]), "127.0.0.1", 0)
    connections = opened(slow, 32)
    for connection in connections:
        connection.sendall(request_.encode())

    def drip() -> None:
        for connection in connections:
            with suppress(OSError):
                connection.send(b"x")

    try:
        assert scrapes(slow, drip) == [200] * 5
    finally:
        for connection in connections:
            connection.close()
        slow.close()


def test_a_client_that_takes_too_long_is_ended(page: DriverPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many bytes it sends, though its place is not needed."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
    (connection,) = opened(page, 1)

    def drip() -> None:
        with suppress(ConnectionError):
            connection.send(b"x")
            raise AssertionError("it is open")

    eventually(drip)
    connection.close()


@pytest.mark.slow
def test_an_answer_that_is_being_made_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients come meanwhile; when all places have one, a further client waits, and is turned away in the end."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 1.0)
    asked, go_on = threading.Semaphore(0), threading.Event()

    def snapshots() -> list[JobSnapshot]:
        asked.release()
        assert go_on.wait(60)
        return [job()]

    page = DriverPage(JobCollector(snapshots), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{page.port}/metrics"
    with ThreadPoolExecutor(16) as pool:
        first = [pool.submit(web.ask, url) for _ in range(15)]
        for _ in first:
            assert asked.acquire(timeout=60)
        idle = opened(page, 20)
        eventually(lambda: are_closed(idle[:-1]))
        last = pool.submit(web.ask, url)
        assert asked.acquire(timeout=60)
        (refused,) = opened(page, 1)
        eventually(lambda: are_closed([refused]))
        go_on.set()
        assert [each.result().status for each in (*first, last)] == [200] * 16
    for connection in (*idle, refused):
        connection.close()
    page.close()


def test_a_scrape_waits_while_all_places_have_an_answer_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than there are places is answered when the first of the others is."""
    asked, go_on, waits = threading.Semaphore(0), threading.Event(), threading.Event()
    end = module._Server._end

    def ended(server: module._Server, **which: Any) -> int:
        count = end(server, **which)
        if "most" in which and not count:
            waits.set()
        return count

    def snapshots() -> list[JobSnapshot]:
        asked.release()
        assert go_on.wait(60)
        return [job()]

    monkeypatch.setattr(module._Server, "_end", ended)
    page = DriverPage(JobCollector(snapshots), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{page.port}/metrics"
    with ThreadPoolExecutor(17) as pool:
        first = [pool.submit(web.ask, url) for _ in range(16)]
        for _ in first:
            assert asked.acquire(timeout=60)
        last = pool.submit(web.ask, url)
        waiting = waits.wait(60)
        go_on.set()
        assert waiting
        assert [each.result().status for each in (*first, last)] == [200] * 17
    page.close()


def are_closed(connections: list[socket.socket]) -> None:
    """The page has ended each of them."""
    for connection in connections:
        connection.settimeout(0)
        try:
            assert connection.recv(1) == b""
        except BlockingIOError:
            raise AssertionError("it is open") from None
        except ConnectionError:
            continue


def test_driver_without_threads_to_spare_answers_later(page: DriverPage) -> None:
    """A scrape for which no thread could be started takes no place."""
    url = f"http://127.0.0.1:{page.port}/metrics"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        for _ in range(20):
            with pytest.raises(AssertionError, match="no answer"):
                web.ask(url)
    assert web.ask(url).status == 200


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_books_that_cannot_be_read_are_an_error_of_that_scrape_only(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is a 500, and the next one a page."""
    good = False

    def snapshots() -> list[JobSnapshot]:
        if not good:
            raise RuntimeError("geheim")
        return [job()]

    page = DriverPage(JobCollector(snapshots), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{page.port}/metrics"
    answer = web.ask(url)
    good = True
    assert web.ask(url).status == 200
    page.close()
    assert answer.status == 500
    assert "geheim" not in answer.text + capsys.readouterr().err


def test_all_addresses_and_ipv6() -> None:
    """An empty address is every address, and one of IPv6 works as well."""
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
