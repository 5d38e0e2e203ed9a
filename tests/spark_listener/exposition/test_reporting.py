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
from tests.spark_listener.exposition.jobs import HOSTILE, job, reported, scraped

from quotascope.spark_listener.exposition import Reporting, otlp, start_reporting
from quotascope.spark_listener.exposition import reporting as reporting_module
from quotascope.spark_listener.exposition.discovery import DEAD_AFTER_SECONDS, DriverEntry
from quotascope.spark_listener.exposition.repeating import Repeating
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
    """Page, entry and push show the same numbers with the cluster, and are removed at the end."""
    threads_before = set(threading.enumerate())
    with http_receiver() as receiver:
        reporting = start(fileSd__path=tmp_path / "{app_id}.json", otlp__endpoint=receiver.url, cluster="prod")
        (entry,) = json.loads((tmp_path / "app-1.json").read_text())
        (target,) = entry["targets"]
        assert reporting.url == f"http://{target}/metrics"
        assert 'cluster="prod"' in web.ask(reporting.url).text
        reporting.close()
        assert pushed(receiver.requests[-1:]) == scraped(job(), cluster="prod")
    assert list(tmp_path.iterdir()) == []
    assert not [t for t in set(threading.enumerate()) - threads_before if t.name.startswith("quotascope-")]


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
    """Mistakes in settings are reported, and the job goes on with the other outputs."""
    (problem,) = problems(**{name: text})
    assert problem in caplog.messages
    assert sentence in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
    ]
)  # fmt: skip
def test_mistakes_of_the_environment(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the environment is reported by its variable, which is only read for a push."""
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
    """An endpoint or a property enables the push, and OpenTelemetry's other variables, common in containers, do not."""
    pushed: list[object] = []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")

    def push(settings: ListenerSettings, *_: object, **__: object) -> SimpleNamespace:
        pushed.append(settings)
        return SimpleNamespace(close=list)

    monkeypatch.setattr(otlp, "JobPush", push)
    assert problems(**properties) == ()
    assert len(pushed) == pushes


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
    """The page listens where the driver's own ports do, under the driver's name, unless settings differ."""
    opened: list[tuple[str, int]] = []

    def page(_collector: object, bind_address: str, port: int) -> Any:
        opened.append((bind_address, port))
        return SimpleNamespace(port=4567, close=list)

    monkeypatch.setattr(reporting_module, "DriverPage", page)
    properties = {f"spark.driver.{name}": text for name, text in driver.items()}
    reporting = start_reporting(ListenerSettings(**settings), properties, list, app_id="a")
    reporting.close()
    assert opened == [(address, 0)]
    assert reporting.url == f"{url}4567/metrics"


def test_a_port_that_is_taken_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """A port that is in use is replaced, as two drivers on one machine can have the same properties."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        reporting = start(http__port=port)
        assert reporting.url is not None
        assert web.ask(reporting.url).status == 200
        reporting.close()
    assert f"port {port} is in use" in caplog.text


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push without OpenTelemetry is reported with the extra that it needs."""
    for name in list(sys.modules):
        if name.startswith(OTLP):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    (problem,) = problems(otlp__endpoint="http://127.0.0.1:1")
    assert "in a clone of quotascope: pip install '.[spark-otlp]'" in problem


def test_books_that_cannot_be_read_do_not_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable books make neither the start nor the close raise."""

    def broken() -> list[JobSnapshot]:
        raise RuntimeError

    monkeypatch.setattr(f"{OTLP}.FLUSH_SECONDS", 0.2)
    properties = {**DRIVER, "spark.quotascope.otlp.endpoint": "http://127.0.0.1:1"}
    reporting = reported(properties, broken)
    assert reporting.url is not None
    assert web.ask(reporting.url).status == 500
    reporting.close()


def test_a_forked_process_ends_nothing() -> None:
    """A job's fork inherits the reporting, but the page is the driver's; it can be switched off."""
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


def entry(folder: Path, app_id: str = "app-1", name: str = "{app_id}.json", target: str = "driver-1:1") -> DriverEntry:
    driver_entry = DriverEntry(str(folder / "spark" / name), app="nightly", app_id=app_id)
    driver_entry.write(target)
    return driver_entry


def age(file: Path, seconds: float) -> None:
    modified = file.stat().st_mtime - seconds
    os.utime(file, (modified, modified))


def test_an_entry_is_as_prometheus_reads_it(tmp_path: Path) -> None:
    """
    The entry has one target and its application as a label.

    The name is a label that is dropped, and nothing else is in the folder.
    """
    entry(tmp_path, target="driver-1:4567")
    (file,) = (tmp_path / "spark").iterdir()
    assert file.name == "app-1.json"
    labels = {"app_id": "app-1", "__meta_quotascope_spark_app": "nightly"}
    assert json.loads(file.read_text()) == [{"targets": ["driver-1:4567"], "labels": labels}]


def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    """An application's id cannot lead out of the folder, and its name may be any text."""
    ours = DriverEntry(str(tmp_path / "{app_id}.json"), app=HOSTILE, app_id="../../etc/x\n")
    ours.write("driver-1:4567")
    (file,) = tmp_path.iterdir()
    assert file == ours.path
    assert json.loads(file.read_text())[0]["labels"]["app_id"] == "../../etc/x\n"


def test_an_entry_is_removed(tmp_path: Path) -> None:
    """A missing entry does not matter; the entry of another driver in the same file stays."""
    first_entry = entry(tmp_path, "app-1", "driver.json")
    second = entry(tmp_path, "app-2", "driver.json", "driver-2:1")
    first_entry.remove()
    assert "driver-2" in second.path.read_text()
    for _ in range(2):
        second.remove()
        assert not second.path.exists()


def test_a_beat_makes_an_entry_young(tmp_path: Path) -> None:
    """A beat renews the entry's time, and restores a removed entry."""
    ours = entry(tmp_path)
    age(ours.path, 500)
    old = ours.path.stat().st_mtime
    ours.beat()
    assert ours.path.stat().st_mtime > old
    ours.path.unlink()
    ours.beat()
    assert "driver-1" in ours.path.read_text()


def test_entries_of_dead_drivers_are_removed_by_the_next(tmp_path: Path) -> None:
    """
    Only our entries are removed.

    They go after ten minutes without a beat, and only by a driver whose setting has `{app_id}`.
    """
    dead, alive = entry(tmp_path, "app-dead").path, entry(tmp_path, "app-alive").path
    age(dead, DEAD_AFTER_SECONDS + 60)
    age(alive, DEAD_AFTER_SECONDS - 60)
    of_others = {
        "node.json": '[{"targets": ["node:1"], "labels": {"app_id": "x"}}]',
        "odd.json": '{"__meta_quotascope_spark_app": 1}',
        "list.json": '["__meta_quotascope_spark_app"]',
        "broken.json": "{",
        "binary.json": "\x00",
        "deep.json": "[" * 100_000,
    }
    for name, text in of_others.items():
        dead.with_name(name).write_text(text)
    os.mkfifo(dead.with_name("pipe.json"))  # who opens it waits for a writer
    for name in (*of_others, "pipe.json"):
        age(dead.with_name(name), DEAD_AFTER_SECONDS + 60)
    entry(tmp_path, "app-one", "driver.json")
    assert dead.exists()
    entry(tmp_path, "app-new")
    remaining = {file.name for file in dead.parent.iterdir()}
    assert remaining == {"app-alive.json", "app-new.json", "driver.json", "pipe.json", *of_others}


def test_repeating_calls_until_it_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    """
    The function is called at once, then again, and the last call comes in the end.

    A failure is a line in the log that shows none of its text.
    """
    calls: list[str] = []
    thrice = threading.Event()

    def call() -> None:
        calls.append("call")
        if len(calls) == 3:
            thrice.set()
        raise RuntimeError("geheim")

    repeating = Repeating(call, 0.001, "test", lambda: calls.append("last"))
    assert thrice.wait(30)
    assert repeating.close(30)
    assert calls.count("last") == 1
    assert calls[-1] == "last"
    assert "RuntimeError" in caplog.text
    assert "geheim" not in caplog.text
