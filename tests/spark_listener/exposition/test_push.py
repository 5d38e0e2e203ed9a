import logging
import threading
from collections.abc import Iterator

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.collector.collector import Collector, collecting
from tests.exporter.otlp.collected import received
from tests.exporter.otlp.messages import metrics, points, pushed
from tests.exporter.otlp.receivers import Receiver, grpc_receiver, http_receiver
from tests.integration import web
from tests.integration.eventually import eventually, some
from tests.spark_listener.exposition.jobs import Key, hostile, job, reported, scraped

from quotascope.spark_listener.exposition.collector import Snapshots
from quotascope.spark_listener.exposition.otlp import LOGGERS, JobPush, _with_path
from quotascope.spark_listener.settings import resolve

PROTOCOLS = {"http/protobuf": http_receiver, "grpc": grpc_receiver}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Restore the loggers that the exporter, in the same process, silences; a driver has none."""
    logger = logging.getLogger("opentelemetry.exporter")
    level_before = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(level_before)


@pytest.fixture
def _brief_end(monkeypatch: pytest.MonkeyPatch) -> None:
    room = "quotascope.spark_listener.exposition.otlp"
    monkeypatch.setattr(f"{room}.FLUSH_SECONDS", 0.2)
    monkeypatch.setattr(f"{room}.TIMEOUT_SECONDS", 0.5)


@pytest.fixture(params=sorted(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def receiver(protocol: str) -> Iterator[Receiver]:
    with PROTOCOLS[protocol]() as receiver:
        yield receiver


def push(snapshots: Snapshots, *, interval: float | None = 3_600, cluster: str = "prod", **otlp: str) -> JobPush:
    """Push jobs to a receiver, at once and at the end."""
    options: dict[str, object] = {f"otlp_{name}": text for name, text in otlp.items()}
    options |= {} if interval is None else {"otlp_interval_seconds": interval}
    settings, problems = resolve({}, {"cluster": cluster or None, **options})
    assert problems == ()
    return JobPush(settings, snapshots, app_id="app-1")


def test_it_holds_what_a_scrape_shows(receiver: Receiver, protocol: str) -> None:
    """
    Series by series, whatever the names hold.

    Every counter is a cumulative sum that began before the first push, with the job, and the driver is the instance.
    """
    jobs = (job(), hostile())
    push(lambda: jobs, endpoint=receiver.url, protocol=protocol).close()
    assert pushed(receiver.requests[-1:]) == scraped(*jobs, cluster="prod")
    for metric in metrics(receiver.requests):
        for point in points(metric):
            if metric.HasField("sum"):
                assert 0 < point.start_time_unix_nano < point.time_unix_nano
                assert metric.sum.is_monotonic
    resource = receiver.requests[0].resource_metrics[0].resource
    reported = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert (reported["service.instance.id"], reported["service.name"]) == ("app-1", "quotascope-spark")


def test_a_short_job_is_flushed(receiver: Receiver, protocol: str) -> None:
    """Numbers after the first push are in the last one, without a label for an absent cluster."""
    numbers = iter([job(), job("renamed")])
    sent = push(lambda: [next(numbers)], endpoint=receiver.url, protocol=protocol, cluster="")
    eventually(lambda: some(receiver.requests))
    sent.close()
    assert pushed(receiver.requests[-1:]) == scraped(job("renamed"))
    assert len(receiver.requests) == 2


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/metrics"),
        ("http://collector:4318/?key=x", "http://collector:4318/v1/metrics?key=x"),
        ("http://collector:4318/otlp", "http://collector:4318/otlp"),
    ],
)
def test_a_url_without_a_path_is_completed(endpoint: str, url: str) -> None:
    """A URL without a path gets the one of OpenTelemetry's specification."""
    assert _with_path(endpoint) == url


def test_the_environment_says_where(receiver: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint, headers, protocol and interval of OpenTelemetry's variables are used unless properties set them."""
    base = receiver.url.removesuffix("/v1/metrics")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", base)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=geheim")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
    sent = push(lambda: [job()], interval=None)
    eventually(lambda: some(receiver.requests[2:]))
    sent.close()
    assert receiver.headers[0]["x-key"] == "geheim"


def test_a_refusal_is_one_line_without_secrets(
    receiver: Receiver, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Any number of refusals is one line, and the success after them is another."""
    caplog.set_level(logging.INFO)
    receiver.status, receiver.code = 401, grpc.StatusCode.UNAUTHENTICATED
    url = receiver.url if protocol == "grpc" else f"{receiver.url}?key=geheim"
    sent = push(lambda: [job()], endpoint=url, protocol=protocol, interval=0.05, secret_headers="key=geheim")
    eventually(lambda: some(receiver.requests[4:]))
    receiver.status, receiver.code = 200, grpc.StatusCode.OK
    eventually(lambda: some([line for line in caplog.messages if line.endswith("again")]))
    sent.close()
    refused_line, second = [line for line in caplog.messages if line.startswith("metrics ")]
    assert ("HTTP 401" in refused_line) or ("UNAUTHENTICATED" in refused_line)
    assert second.endswith("again")
    assert "geheim" not in caplog.text
    assert not [record for record in caplog.records if record.name in LOGGERS]


@pytest.mark.usefixtures("_brief_end")
def test_no_one_there(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without a receiver, no log shows a key in the URL, and a running push is given up at the end."""
    sent = push(lambda: [job()], endpoint="http://127.0.0.1:1/x?key=geheim", protocol=protocol, interval=0.05)
    eventually(lambda: some(caplog.messages))
    sent.close()
    assert "geheim" not in caplog.text
    eventually(lambda: ended("quotascope-otlp"))


@pytest.mark.usefixtures("_brief_end")
def test_a_receiver_that_does_not_answer_is_given_up(
    receiver: Receiver, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the job waits for a receiver no longer than the timeout."""
    receiver.released.clear()
    sent = push(lambda: [job()], endpoint=receiver.url, protocol=protocol)
    sent.close()
    receiver.released.set()
    eventually(lambda: ended("quotascope-otlp"))
    assert "did not reach" in caplog.text


def ended(name: str) -> None:
    assert name not in [thread.name for thread in threading.enumerate()]


@pytest.mark.usefixtures("_brief_end")
def test_others_may_use_the_same_exporters(caplog: pytest.LogCaptureFixture) -> None:
    """Lines of the SDK about the job's own metrics stay."""
    sent = push(lambda: [job()], endpoint="http://127.0.0.1:1/", protocol="grpc", interval=0.05)
    for name in LOGGERS:
        logging.getLogger(name).error("of the job")
    sent.close()
    assert caplog.messages.count("of the job") >= 1


OWN = ("instance", "job")
"""Labels that say who pushed, as a scrape adds them."""


@pytest.fixture
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """Yield a Collector for this test alone, for it remembers series."""
    folder = tmp_path_factory.mktemp("otlp") / "collector"
    with collecting(folder) as collector:
        yield collector


@pytest.mark.real
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_prometheus_sees_the_same_behind_a_collector(collector: Collector, protocol: str) -> None:
    """Names, labels and values are equal, series by series, whatever the names hold."""
    endpoint = collector.grpc if protocol == "grpc" else collector.http
    properties = {
        "spark.app.name": "nightly",
        "spark.driver.host": "127.0.0.1",
        "spark.quotascope.cluster": "prod",
        "spark.quotascope.otlp.endpoint": endpoint,
        "spark.quotascope.otlp.protocol": protocol,
    }
    jobs = [job(), hostile()]
    reporting = reported(properties, lambda: jobs)
    assert reporting.url is not None
    scraped = series(web.ask(reporting.url).text)
    reporting.close()
    assert reporting.problems == ()
    collected = eventually(lambda: shown_by(collector, len(scraped)))
    assert collected == scraped


def shown_by(collector: Collector, count: int) -> dict[Key, float]:
    """Return the series that the Collector shows to Prometheus, when there are as many as expected."""
    collected = series(collector.page())
    assert len(collected) == count
    return collected


def series(page: str) -> dict[Key, float]:
    """Return a page's series, without the labels of their sender."""
    return {
        (sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if v and k not in OWN))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name != "target_info"
    }


@pytest.mark.real
def test_a_collector_understands_the_driver(collector: Collector) -> None:
    """The collector gets units, sums that began with the job, and the driver as an instance."""
    properties = {"spark.driver.host": "127.0.0.1", "spark.quotascope.otlp.endpoint": collector.http}
    reported(properties, lambda: [job()]).close()
    named = {metric["name"]: metric for metric in received(collector)}
    throttled = named["spark.kafka_throttled"]
    assert throttled["unit"] == "s"
    assert throttled["sum"]["isMonotonic"] is True
    (whole, *_) = collector.requests()[0]["resourceMetrics"]
    resource = {pair["key"]: pair["value"]["stringValue"] for pair in whole["resource"]["attributes"]}
    assert resource["service.instance.id"] == "app-1"
