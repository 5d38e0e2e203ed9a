import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st
from kafka.metrics import MetricConfig, Metrics
from kafka.net.metrics import KafkaConnectionMetrics
from tests.integration.eventually import eventually
from tests.spark_listener.threads import in_threads

import quotascope.clients.accounting
from quotascope.clients.accounting import (
    OVERFLOW,
    ClientTotals,
    Side,
    ThrottleAccount,
    confluent_kafka_config,
    kafka_python_config,
    watch,
)
from quotascope.clients.accounting.account import RecentLongest

STEPS = st.lists(st.tuples(st.integers(0, 1_000), st.floats(0, 200)), max_size=30)


def test_throttle_times_are_summed() -> None:
    """Responses without a throttle time do not count."""
    account = ThrottleAccount()
    client = account.client("alice", "etl", "write")
    for throttle_ms in (0, 250, 0, 100, -1):
        client.throttled(throttle_ms)
    client.retried()
    (totals,) = account.totals()
    assert totals == ClientTotals(client.totals.client, 350, 2, 250, 250, 1)


def test_the_longest_of_late_passes() -> None:
    """The recent longest time passes, and the longest of all stays."""
    now = 0.0
    account = ThrottleAccount(clock=lambda: now)
    account.client("", "etl", "read").throttled(900)
    now = 500.0
    (totals,) = account.totals()
    assert (totals.longest_ms, totals.recent_longest_ms) == (900, 0)


def test_totals_of_others_are_added() -> None:
    """Totals of tasks add up by user, client id and side, for these are what a quota limits."""
    task, driver = ThrottleAccount(), ThrottleAccount()
    task.client("alice", "etl", "read").throttled(30)
    task.client("alice", "etl", "admin").retried()
    for _ in range(2):
        for totals in task.totals():
            driver.add(totals)
    admin, reader = driver.totals()
    assert (reader.throttled_ms, reader.responses, reader.longest_ms) == (60, 2, 30)
    assert admin.quota_retries == 2


def test_clients_that_come_too_late_are_counted_together() -> None:
    """Clients beyond the maximum are counted together, in bounded memory and with true sums."""
    account = ThrottleAccount(most_clients=2)
    for number in range(100):
        account.client("", f"client-{number}", "read").throttled(1)
    account.client("", "client-0", "read").throttled(1)
    throttled = {totals.client.client_id: totals.throttled_ms for totals in account.totals()}
    assert throttled == {"client-0": 2, "client-1": 1, OVERFLOW: 98}


def test_a_side_must_be_one() -> None:
    """An unknown side is refused where it is passed."""
    with pytest.raises(ValueError, match="side is one of read, write, admin, not 'w'"):
        ThrottleAccount().client("", "etl", cast("Side", "w"))


def test_no_count_is_lost_between_threads() -> None:
    """Callbacks come on the threads of the libraries."""
    account = ThrottleAccount()

    def work() -> None:
        for _ in range(2_000):
            account.client("", "etl", "read").throttled(1)

    in_threads(work)
    assert account.totals()[0].throttled_ms == 8_000


def test_what_is_recent_is_seen_and_forgotten() -> None:
    """A recent value is seen for a minute at least and two at most, however often it is read."""
    recent = RecentLongest(60, 100.0)
    recent.record(7, 119.0)
    assert [recent.value(moment) for moment in (119.0, 150.0, 179.0, 179.0, 239.0)] == [7, 7, 7, 7, 0]
    late = RecentLongest(60, 100.0)
    late.record(7, 119.0)
    assert late.value(239.0) == 0
    late.record(5, 240.0)
    late.record(3, 290.0)
    assert [late.value(moment) for moment in (300.0, 10_000.0)] == [5, 0]


@given(STEPS)
def test_it_lies_between_one_span_and_two(steps: list[tuple[int, float]]) -> None:
    """A recent maximum is at least that of the last span, and at most that of the last two."""
    recent, now = RecentLongest(60, 0.0), 0.0
    records: list[tuple[float, int]] = []
    for value, pause in steps:
        now += pause
        recent.record(value, now)
        records.append((now, value))
        of_one = max(value for moment, value in records if moment > now - 60)
        of_two = max(value for moment, value in records if moment >= now - 120)
        assert of_one <= recent.value(now) <= of_two


@dataclass(frozen=True)
class Event:
    """A `ThrottleEvent`, which cannot be made in Python."""

    throttle_time: float


def test_seconds_are_counted_as_whole_milliseconds() -> None:
    """A throttle of 1001 ms comes as 1.001 s, which is no exact number; the event of 0 at the end counts nothing."""
    account = ThrottleAccount()
    count = confluent_kafka_config({}, account, side="write")["throttle_cb"]
    for throttle_ms in (1_001, 29, 0):
        count(Event(throttle_ms / 1_000))
    (totals,) = account.totals()
    assert (totals.throttled_ms, totals.responses) == (1_030, 2)


def test_the_programs_own_callback_stays() -> None:
    """The program's own callback gets every event, and its configuration is not changed."""
    events: list[Event] = []
    config: dict[str, Any] = {"throttle_cb": events.append}
    merged = confluent_kafka_config(config, ThrottleAccount(), side="read")
    merged["throttle_cb"](Event(0.5))
    merged["throttle_cb"](Event(0))
    assert [event.throttle_time for event in events] == [0.5, 0]
    assert config["throttle_cb"] == events.append


@pytest.mark.parametrize(
    ("config", "user", "client"),
    [
        ({}, None, ("", "rdkafka")),
        ({"sasl.username": "alice", "client.id": "etl"}, None, ("alice", "etl")),
        ({"sasl.username": "alice"}, "CN=alice", ("CN=alice", "rdkafka")),
        ({"sasl.username": None, "client.id": None}, None, ("", "rdkafka")),
    ],
)
def test_the_client_is_known_by_its_configuration(
    config: dict[str, Any], user: str | None, client: tuple[str, str]
) -> None:
    """User and client id come from the configuration; a user can be passed, such as that of a certificate."""
    account = ThrottleAccount()
    confluent_kafka_config(config, account, side="read", user=user)
    assert account.totals()[0].client == (*client, "read")


def test_the_default_client_id_is_librdkafkas() -> None:
    """The statistics of librdkafka show its default client id, which is what a quota sees."""
    reported: list[dict[str, Any]] = []
    config = {
        "bootstrap.servers": "127.0.0.1:1",
        "log_level": 0,
        "statistics.interval.ms": 10,
        "stats_cb": lambda text: reported.append(json.loads(text)),
    }
    producer = confluent_kafka.Producer(config)

    def poll() -> None:
        producer.poll(0.05)
        assert reported

    eventually(poll)
    account = ThrottleAccount()
    confluent_kafka_config(config, account, side="write")
    assert account.totals()[0].client.client_id == reported[0]["client_id"]


@pytest.mark.parametrize("make", [confluent_kafka.Producer, AdminClient])
def test_confluent_kafka_takes_the_configuration(make: Callable[[dict[str, Any]], object]) -> None:
    """The library refuses options that it does not know."""
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    make(confluent_kafka_config(config, ThrottleAccount(), side="write"))


CLASSES: Mapping[Side, Any] = {
    "read": kafka.KafkaConsumer,
    "write": kafka.KafkaProducer,
    "admin": kafka.KafkaAdminClient,
}


def metrics_of(client_id: str) -> Metrics:
    return Metrics(MetricConfig(tags={"client-id": client_id}))


def client_of(metrics: Metrics | None) -> SimpleNamespace:
    """Return a client of the library, with the attributes that `watch` uses."""
    config = {"client_id": "etl", "sasl_plain_username": "alice"}
    return SimpleNamespace(config=config, _metrics=metrics)


@pytest.mark.parametrize("side", CLASSES)
def test_kafka_python_still_has_what_is_used(side: Side) -> None:
    """A version of kafka-python without this inside cannot be counted: pin another one, or change the adapter."""
    assert callable(CLASSES[side].DEFAULT_CONFIG["kafka_client"])
    configurations: list[dict[str, Any]] = []

    def connect(**configs: Any) -> object:
        configurations.append(configs)
        raise InterruptedError

    config = {"client_id": "etl", "kafka_client": connect}
    with pytest.raises(InterruptedError):
        CLASSES[side](**kafka_python_config(config, ThrottleAccount(), side=side))
    (configs,) = configurations
    assert configs["client_id"] == "etl"
    assert "throttle-time-total" in {metric.name for metric in configs["metrics"].metrics}


def test_each_recorded_response_is_counted() -> None:
    """
    Each response is counted, whichever sensor is created first: a connection's is a child of the counting one.

    `metrics()` has the sum.
    """
    for early in (True, False):
        account, metrics = ThrottleAccount(), metrics_of("etl")
        early_sensors = None if early else KafkaConnectionMetrics(metrics, "producer", 1)
        assert watch(client_of(metrics), account, side="write")
        sensors = early_sensors or KafkaConnectionMetrics(metrics, "producer", 1)
        for throttle_ms in (0, 250, 0, 40):
            sensors.throttle_time.record(throttle_ms)
        (totals,) = account.totals()
        assert totals.client == ("alice", "etl", "write")
        assert (totals.throttled_ms, totals.responses) == (290, 2)
        values = {name.name: metric.value() for name, metric in metrics.metrics.items()}
        assert (values["throttle-time-total"], values["throttle-time-max"]) == (290, 250)


def test_nothing_is_counted_twice(caplog: pytest.LogCaptureFixture) -> None:
    """A client is watched once, whatever account watches it again; a user can be passed."""
    metrics = metrics_of("etl")
    first_account, second = ThrottleAccount(), ThrottleAccount()
    assert watch(client_of(metrics), first_account, side="read", user="CN=etl")
    with caplog.at_level(logging.WARNING):
        assert not watch(client_of(metrics), second, side="read")
    assert "already exists" in caplog.text
    KafkaConnectionMetrics(metrics, "", 1).throttle_time.record(5)
    assert [
        (account.totals()[0].client.user, account.totals()[0].throttled_ms) for account in (first_account, second)
    ] == [
        ("CN=etl", 5),
        ("alice", 0),
    ]


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (client_of(None), "it keeps no metrics"),
        (object(), "it keeps no metrics"),
        (SimpleNamespace(_metrics=object()), "has no attribute 'metric_name'"),
    ],
)
def test_a_client_that_cannot_be_watched_is_left_alone(
    client: object, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The program gets a warning, and no exception."""
    with caplog.at_level(logging.WARNING):
        assert not watch(client, ThrottleAccount(), side="read")
    assert reason in caplog.text


FOLDER = Path(quotascope.clients.accounting.__file__).parent
USE = """
from accounting import ThrottleAccount, confluent_kafka_config
import sys
account = ThrottleAccount()
confluent_kafka_config({}, account, side="write")
assert account.totals()
assert not [name for name in sys.modules if name.split(".")[0] in ("quotascope", "kafka", "confluent_kafka")]
"""


def test_it_needs_nothing_of_ours(tmp_path: Path) -> None:
    """
    The folder works alone under any name, as in tasks of old Spark clusters.

    Libraries are imported only for their own clients.
    """
    shutil.copytree(FOLDER, tmp_path / "accounting")
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
