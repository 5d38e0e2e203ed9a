import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import grpc
import pytest
from tests.exporter.otlp.messages import metrics, points, pushed
from tests.exporter.otlp.receivers import Receiver, grpc_receiver, http_receiver
from tests.integration.eventually import eventually
from tests.spark_listener.exposition.jobs import hostile, job, scraped

from quotascope.spark_listener.exposition.otlp.push import Push
from quotascope.spark_listener.exposition.otlp.quiet import LOGGERS
from quotascope.spark_listener.exposition.settings import push_settings
from quotascope.spark_listener.job import JobSnapshot

Opened = Callable[[], AbstractContextManager[Receiver]]
PROTOCOLS = {"http/protobuf": http_receiver, "grpc": grpc_receiver}
LONG = "3600"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """The exporter, in the same process, silences all of them; a driver has none."""
    logger = logging.getLogger("opentelemetry.exporter")
    before = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(before)


@pytest.fixture
def _brief_end(monkeypatch: pytest.MonkeyPatch) -> None:
    room = "quotascope.spark_listener.exposition.otlp"
    monkeypatch.setattr(f"{room}.push.FLUSH_SECONDS", 0.2)
    monkeypatch.setattr(f"{room}.exporters.TIMEOUT_SECONDS", 0.5)


@pytest.fixture(params=sorted(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> str:
    """Both that OTLP knows."""
    return str(request.param)


@pytest.fixture
def receiver(protocol: str) -> Iterator[Receiver]:
    """A receiver that speaks it."""
    with PROTOCOLS[protocol]() as receiver:
        yield receiver


def push(
    url: str, protocol: str, *jobs: JobSnapshot, interval: str = LONG, headers: str = ""
) -> Push:
    """Push jobs to a receiver, at once and at the end."""
    properties = {
        "endpoint": url,
        "protocol": protocol,
        "intervalSeconds": interval,
        "secretHeaders": headers,
    }
    named = {f"spark.quotascope.otlp.{key}": text for key, text in properties.items()}
    settings = push_settings(named, {})
    assert settings is not None
    return Push(settings, lambda: jobs, app_id="app-1", cluster="prod")


def test_it_holds_what_a_scrape_shows(receiver: Receiver, protocol: str) -> None:
    """Series by series, whatever the names hold."""
    jobs = (job(), hostile())
    push(receiver.url, protocol, *jobs).close()
    assert pushed(receiver.requests[-1:]) == scraped(*jobs, cluster="prod")


def test_a_short_job_is_flushed(receiver: Receiver, protocol: str) -> None:
    """What happened after the first push comes with the last one."""
    numbers = iter([job(), job("renamed")])
    sent = push(receiver.url, protocol, *[])
    sent.close()
    before = len(receiver.requests)
    properties = {
        "spark.quotascope.otlp.endpoint": receiver.url,
        "spark.quotascope.otlp.protocol": protocol,
        "spark.quotascope.otlp.intervalSeconds": LONG,
    }
    settings = push_settings(properties, {})
    assert settings is not None
    late = Push(settings, lambda: [next(numbers)], app_id="app-1", cluster=None)
    eventually(lambda: came(receiver, before + 1))
    late.close()
    assert pushed(receiver.requests[-1:]) == scraped(job("renamed"))
    assert len(receiver.requests) == before + 2


def came(receiver: Receiver, requests: int) -> None:
    """So many requests came."""
    assert len(receiver.requests) >= requests


def test_counts_begin_with_the_job(receiver: Receiver, protocol: str) -> None:
    """Every counter is a cumulative sum that began before the first push, and the driver is the instance."""
    push(receiver.url, protocol, job()).close()
    for metric in metrics(receiver.requests):
        for point in points(metric):
            if metric.HasField("sum"):
                assert 0 < point.start_time_unix_nano < point.time_unix_nano
                assert metric.sum.is_monotonic
    resource = receiver.requests[0].resource_metrics[0].resource
    told = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert told["service.instance.id"] == "app-1"
    assert told["service.name"] == "quotascope-spark"


def test_headers_are_sent(receiver: Receiver, protocol: str) -> None:
    """With their values as they are meant."""
    headers = "Authorization=Bearer%20geheim"
    push(receiver.url, protocol, job(), headers=headers).close()
    assert receiver.headers[0]["authorization"] == "Bearer geheim"


def test_the_environment_says_where(
    receiver: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoint and headers of OpenTelemetry's variables are taken where no property says otherwise."""
    base = receiver.url.removesuffix("/v1/metrics")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", base)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=geheim")
    properties = {
        "spark.quotascope.otlp.enabled": "true",
        "spark.quotascope.otlp.protocol": protocol,
    }
    settings = push_settings(properties, {})
    assert settings is not None
    Push(settings, lambda: [job()], app_id="app-1", cluster=None).close()
    assert receiver.headers[0]["x-key"] == "geheim"


def test_a_refusal_is_one_line_without_secrets(
    receiver: Receiver,
    protocol: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However often it is tried, and however it is answered; when it works again that is one line, too."""
    caplog.set_level(logging.INFO)
    receiver.status, receiver.code = 401, grpc.StatusCode.UNAUTHENTICATED
    url = receiver.url if protocol == "grpc" else f"{receiver.url}?key=geheim"
    sent = push(url, protocol, job(), interval="0.01", headers="key=geheim")
    eventually(lambda: came(receiver, 5))
    receiver.status, receiver.code = 200, grpc.StatusCode.OK
    eventually(lambda: said(caplog, "again"))
    sent.close()
    first, second = [line for line in caplog.messages if line.startswith("metrics ")]
    assert ("HTTP 401" in first) or ("UNAUTHENTICATED" in first)
    assert second.endswith("again")
    assert "geheim" not in caplog.text
    assert not [record for record in caplog.records if record.name in LOGGERS]


def said(caplog: pytest.LogCaptureFixture, word: str) -> None:
    """A line of the log ends so."""
    assert any(line.endswith(word) for line in caplog.messages)


@pytest.mark.usefixtures("_brief_end")
def test_nobody_there(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither attempts nor reasons show a key in the URL, and what is under way is given up at the end."""
    sent = push("http://127.0.0.1:1/x?key=geheim", protocol, job(), interval="0.01")
    eventually(lambda: some_line(caplog))
    sent.close()
    assert "geheim" not in caplog.text
    eventually(lambda: ended("quotascope-otlp"))


def some_line(caplog: pytest.LogCaptureFixture) -> None:
    """Something was logged."""
    assert caplog.messages


@pytest.mark.usefixtures("_brief_end")
def test_a_receiver_that_does_not_answer_is_given_up(
    receiver: Receiver,
    protocol: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The end of the job does not wait for it longer than it may."""
    receiver.released.clear()
    sent = push(receiver.url, protocol, job())
    sent.close()
    receiver.released.set()
    eventually(lambda: ended("quotascope-otlp"))
    assert "did not reach" in caplog.text


def ended(name: str) -> None:
    """No thread of that name is left."""
    assert name not in [thread.name for thread in threading.enumerate()]


@pytest.mark.usefixtures("_brief_end")
def test_others_may_use_the_same_exporters(caplog: pytest.LogCaptureFixture) -> None:
    """What the SDK logs for the job's own metrics stays."""
    sent = push("http://127.0.0.1:1/", "grpc", job(), interval="0.01")
    for name in LOGGERS:
        logging.getLogger(name).error("of the job")
    sent.close()
    assert caplog.messages.count("of the job") >= 1
