import json
import os
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.exporter.otlp.messages import pushed
from tests.exporter.otlp.receivers import http_receiver
from tests.integration import web
from tests.spark_listener.exposition.jobs import job, reported, scraped

from quotascope.spark_listener.exposition import Reporting, otlp, start_reporting
from quotascope.spark_listener.exposition import reporting as reporting_module
from quotascope.spark_listener.job import JobSnapshot
from quotascope.spark_listener.settings import ListenerSettings

OTLP = "quotascope.spark_listener.exposition.otlp"
DRIVER = {"spark.driver.host": "127.0.0.1", "spark.app.name": "nightly"}


def start(**properties: object) -> Reporting:
    """Report a job under the properties `spark.quotascope.*`; dots are written as two underscores."""
    named = {f"spark.quotascope.{name.replace('__', '.')}": str(text) for name, text in properties.items()}
    return reported({**DRIVER, **named}, lambda: [job()])


def problems(**properties: object) -> tuple[str, ...]:
    reporting = start(**properties)
    reporting.close()
    return reporting.problems


def test_everything_at_once(tmp_path: Path) -> None:
    """Page, entry and push show the same, with the cluster, and leave nothing behind."""
    before = set(threading.enumerate())
    with http_receiver() as receiver:
        reporting = start(fileSd__path=tmp_path / "{app_id}.json", otlp__endpoint=receiver.url, cluster="prod")
        (entry,) = json.loads((tmp_path / "app-1.json").read_text())
        (target,) = entry["targets"]
        assert reporting.url == f"http://{target}/metrics"
        assert 'cluster="prod"' in web.ask(reporting.url).text
        reporting.close()
        assert pushed(receiver.requests[-1:]) == scraped(job(), cluster="prod")
    assert list(tmp_path.iterdir()) == []
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("quotascope-")]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("http__bindAddress", "no.such.host.invalid", "there is no page"),
        ("fileSd__path", "/proc/nowhere/{app_id}.json", "cannot find the driver by"),
    ],
)
def test_mistakes_are_reported_and_nothing_more(
    name: str, text: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The job goes on; what can be shown is shown."""
    (problem,) = problems(**{name: text})
    assert problem in caplog.messages
    assert sentence in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke"), ("OTEL_METRIC_EXPORT_INTERVAL", "soon"), ("OTEL_METRIC_EXPORT_INTERVAL", "0")]
)  # fmt: skip
def test_mistakes_of_the_environment(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are reported by the name of the variable; without a push, it is not looked at."""
    monkeypatch.setenv(name, value)
    (problem,) = problems(otlp__enabled="true")
    assert problem.startswith(f"metrics are not pushed: {name}: expected ")
    assert problems() == ()


@pytest.mark.parametrize(
    ("properties", "pushes"),
    [
        ({}, 0),
        ({"otlp__enabled": "false", "otlp__endpoint": "http://127.0.0.1:1"}, 0),
        ({"otlp__endpoint": "http://127.0.0.1:1"}, 1),
        ({"otlp__enabled": "true"}, 1),
    ],
)
def test_an_endpoint_or_a_property_switches_the_push_on(
    properties: dict[str, str], pushes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry's variables are in every container; they alone switch nothing on."""
    made: list[object] = []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")

    def push(settings: ListenerSettings, *_: object, **__: object) -> SimpleNamespace:
        made.append(settings)
        return SimpleNamespace(close=list)

    monkeypatch.setattr(otlp, "JobPush", push)
    assert problems(**properties) == ()
    assert len(made) == pushes


@pytest.mark.parametrize(
    ("settings", "driver", "address", "url"),
    [
        ({}, {"host": "127.0.0.2", "bindAddress": "127.0.0.1"}, "127.0.0.1", "http://127.0.0.2:"),
        ({}, {"host": "127.0.0.1"}, "127.0.0.1", "http://127.0.0.1:"),
        ({}, {}, "localhost", "http://localhost:"),
        ({"http_bind_address": "127.0.0.3", "http_host": "proxy"}, {"host": "127.0.0.1"}, "127.0.0.3", "http://proxy:"),
        ({"http_host": "::1"}, {}, "localhost", "http://[::1]:"),
        ({}, {"host": "[fd00::1]"}, "fd00::1", "http://[fd00::1]:"),
    ]
)  # fmt: skip
def test_the_page_is_where_the_driver_is(
    settings: dict[str, Any], driver: dict[str, str], address: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens where the driver's own ports do, and is called what the driver is called, unless settings differ."""
    opened: list[tuple[str, int]] = []

    def page(_collector: object, bind_address: str, port: int) -> Any:
        opened.append((bind_address, port))
        return SimpleNamespace(port=4567, close=list)

    monkeypatch.setattr(reporting_module, "DriverPage", page)
    properties = {f"spark.driver.{name}": text for name, text in driver.items()}
    made = start_reporting(ListenerSettings(**settings), properties, list, app_id="a")
    made.close()
    assert opened == [(address, 0)]
    assert made.url == f"{url}4567/metrics"


def test_a_port_that_is_taken_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """Two drivers on one machine can have the same properties."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        reporting = start(http__port=port)
        assert reporting.url is not None
        assert web.ask(reporting.url).status == 200
        reporting.close()
    assert f"port {port} is in use" in caplog.text


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push says which extra it needs."""
    for name in list(sys.modules):
        if name.startswith(OTLP):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    (problem,) = problems(otlp__endpoint="http://127.0.0.1:1")
    assert "quotascope-spark[spark-otlp]" in problem


def test_books_that_cannot_be_read_do_not_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither starting nor closing raises."""

    def broken() -> list[JobSnapshot]:
        raise RuntimeError

    monkeypatch.setattr(f"{OTLP}.FLUSH_SECONDS", 0.2)
    properties = {**DRIVER, "spark.quotascope.otlp.endpoint": "http://127.0.0.1:1"}
    reporting = reported(properties, broken)
    assert reporting.url is not None
    assert web.ask(reporting.url).status == 500
    reporting.close()


def test_a_forked_process_ends_nothing() -> None:
    """What a job forks inherits the books, but the page is the driver's; it can be switched off."""
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
    without = start(http__enabled="false")
    assert (without.url, without.problems) == (None, ())
    without.close()
