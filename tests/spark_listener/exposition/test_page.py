import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration import web
from tests.integration.eventually import eventually
from tests.spark_listener.exposition.jobs import job

from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.exposition.page import Page
from quotascope.spark_listener.job import JobSnapshot


@pytest.fixture
def page() -> Iterator[Page]:
    """The page of a job on a free port."""
    page = Page(JobCollector(lambda: [job()]), "127.0.0.1", 0)
    try:
        yield page
    finally:
        page.close()


def test_it_shows_the_job(page: Page) -> None:
    """Prometheus's text format at /metrics, and elsewhere the way there."""
    answer = web.ask(f"http://127.0.0.1:{page.port}/metrics?x=1")
    assert answer.status == 200
    assert "version=" in answer.headers["Content-Type"]
    assert 'spark_listener_events_total{app="nightly"} 1000.0' in answer.text
    elsewhere = web.ask(f"http://127.0.0.1:{page.port}/")
    assert elsewhere.status == 404
    assert "/metrics" in elsewhere.text


def test_it_answers_many_at_once(page: Page) -> None:
    """Scrapes that overlap all get the whole page."""
    url = f"http://127.0.0.1:{page.port}/metrics"
    with ThreadPoolExecutor(8) as pool:
        sizes = {len(answer.body) for answer in pool.map(web.ask, [url] * 40)}
    assert len(sizes) == 1


def test_silent_visitors_are_turned_away(page: Page) -> None:
    """Beyond sixteen at once connections are closed, and those who leave make room."""
    silent = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(20)]
    eventually(lambda: page_is_full(silent))
    for connection in silent:
        connection.close()
    url = f"http://127.0.0.1:{page.port}/metrics"
    assert eventually(lambda: web.ask(url)).status == 200


def test_driver_without_threads_to_spare_answers_later(page: Page) -> None:
    """A scrape for which no thread could be started takes nobody's place."""
    url = f"http://127.0.0.1:{page.port}/metrics"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        for _ in range(20):
            with pytest.raises(AssertionError, match="no answer"):
                web.ask(url)
    assert web.ask(url).status == 200


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def page_is_full(connections: list[socket.socket]) -> None:
    """Some connection was closed by the page."""
    closed = 0
    for connection in connections:
        connection.settimeout(0)
        try:
            closed += connection.recv(1) == b""
        except BlockingIOError:
            pass
        except ConnectionError:
            closed += 1
    assert closed >= 4


def test_closed_it_leaves_nothing() -> None:
    """Its threads end, its port is free again, and a second page can take it."""
    page = Page(JobCollector(lambda: [job()]), "127.0.0.1", 0)
    web.ask(f"http://127.0.0.1:{page.port}/metrics")
    page.close()
    names = [thread.name for thread in threading.enumerate()]
    assert "quotascope-page" not in names
    again = Page(JobCollector(lambda: [job()]), "127.0.0.1", page.port)
    again.close()


def test_books_that_cannot_be_read_are_an_error_of_that_scrape_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The answer is a 500, and the next one a page."""
    good = False

    def snapshots() -> list[JobSnapshot]:
        if not good:
            raise RuntimeError("geheim")
        return [job()]

    page = Page(JobCollector(snapshots), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{page.port}/metrics"
    answer = web.ask(url)
    good = True
    assert web.ask(url).status == 200
    page.close()
    assert answer.status == 500
    assert "geheim" not in answer.text + capsys.readouterr().err


def test_a_port_that_is_taken() -> None:
    """Is told at once."""
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError):
        Page(JobCollector(list), "127.0.0.1", other.getsockname()[1])


def test_all_addresses_and_ipv6() -> None:
    """An empty address is every address, and one of IPv6 works as well."""
    everywhere = Page(JobCollector(list), "", 0)
    web.ask(f"http://127.0.0.1:{everywhere.port}/metrics")
    everywhere.close()
    six = Page(JobCollector(list), "::1", 0)
    assert web.ask(f"http://[::1]:{six.port}/metrics").status == 200
    six.close()
