import json
import os
import re
import socket
import sys
import threading
from pathlib import Path

import pytest
from tests.exporter.otlp.messages import pushed
from tests.exporter.otlp.receivers import http_receiver
from tests.integration import web
from tests.spark_listener.exposition.jobs import job, scraped

from quotascope.spark_listener.exposition import KEYS, Reporting, keys, start_reporting
from quotascope.spark_listener.job import JobSnapshot

OTLP = "quotascope.spark_listener.exposition.otlp"
DRIVER = {"spark.driver.host": "127.0.0.1", "spark.app.name": "nightly"}


def start(**properties: object) -> Reporting:
    """Report a job under the properties `spark.quotascope.*`; dots are written as two underscores."""
    named = {
        f"spark.quotascope.{name.replace('__', '.')}": str(text)
        for name, text in properties.items()
    }
    return start_reporting({**DRIVER, **named}, lambda: [job()], app_id="app-1")


def test_a_driver_has_a_page() -> None:
    """Without any property, on a free port of its own address, until it is closed; closing twice is no matter."""
    reporting = start()
    assert reporting.url is not None
    assert "nightly" in web.ask(reporting.url).text
    reporting.close()
    reporting.close()
    with pytest.raises(AssertionError, match="no answer"):
        web.ask(reporting.url)
    assert reporting.problems == ()


def test_everything_at_once(tmp_path: Path) -> None:
    """Page, entry and push show the same, with the cluster, and leave nothing behind."""
    with http_receiver() as receiver:
        reporting = start(
            fileSd__path=tmp_path / "{app_id}.json",
            otlp__endpoint=receiver.url,
            cluster="prod",
        )
        (entry,) = json.loads((tmp_path / "app-1.json").read_text())
        (target,) = entry["targets"]
        assert reporting.url == f"http://{target}/metrics"
        assert 'cluster="prod"' in web.ask(reporting.url).text
        reporting.close()
        assert pushed(receiver.requests[-1:]) == scraped(job(), cluster="prod")
    assert list(tmp_path.iterdir()) == []
    assert not [t for t in threading.enumerate() if t.name.startswith("quotascope-")]


def test_switched_off() -> None:
    """No page, no problem."""
    reporting = start(http__enabled="false")
    assert (reporting.url, reporting.problems) == (None, ())
    reporting.close()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("http__port", "x", "there is no page for Prometheus: .*http.port"),
        ("http__bindAddress", "no.such.host.invalid", "there is no page"),
        ("fileSd__path", "/proc/nowhere/{app_id}.json", "cannot find the driver by"),
        ("otlp__endpoint", "collector", "metrics are not pushed: .*otlp.endpoint"),
        ("otlp__protocol", "smoke", "metrics are not pushed: .*otlp.protocol"),
    ],
)
def test_mistakes_are_told_and_nothing_more(
    name: str, text: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The job goes on; what can be shown is shown."""
    more = {"otlp__enabled": "true"} if name == "otlp__protocol" else {}
    reporting = start(**{name: text}, **more)
    reporting.close()
    (problem,) = reporting.problems
    assert problem in caplog.messages
    assert re.search(sentence, problem)


def test_a_port_that_is_taken_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """Two drivers on one machine can have the same properties."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        reporting = start(http__port=port)
        assert reporting.url is not None
        assert web.ask(reporting.url).status == 200
        reporting.close()
    assert f"port {port} is not to be had" in caplog.text


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push says which extra it needs."""
    for name in list(sys.modules):
        if name.startswith(OTLP):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    reporting = start(otlp__endpoint="http://127.0.0.1:1")
    reporting.close()
    (problem,) = reporting.problems
    assert "quotascope[otlp]" in problem


def test_books_that_cannot_be_read_do_not_hurt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither starting nor closing raises."""

    def broken() -> list[JobSnapshot]:
        raise RuntimeError

    monkeypatch.setattr(f"{OTLP}.push.FLUSH_SECONDS", 0.2)
    properties = {**DRIVER, "spark.quotascope.otlp.endpoint": "http://127.0.0.1:1"}
    reporting = start_reporting(properties, broken, app_id="app-1")
    assert reporting.url is not None
    assert web.ask(reporting.url).status == 500
    reporting.close()


def test_a_forked_process_ends_nothing() -> None:
    """What a job forks inherits the books, but the page is the driver's."""
    reporting = start()
    child = os.fork()
    if child == 0:
        reporting.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert reporting.url is not None
    assert web.ask(reporting.url).status == 200
    reporting.close()


def test_every_property_is_known() -> None:
    """The list holds all names that are defined beside it."""
    defined = {
        value
        for name, value in vars(keys).items()
        if name.isupper() and isinstance(value, str) and name != "PREFIX"
    }
    assert defined == KEYS
