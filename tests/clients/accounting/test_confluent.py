import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.eventually import eventually

from quotascope.clients.accounting import ThrottleAccount, confluent_kafka_config


@dataclass(frozen=True)
class Event:
    """A `ThrottleEvent`, which cannot be made in Python."""

    throttle_time: float


def test_seconds_are_counted_as_whole_milliseconds() -> None:
    """What Kafka reported as 1001 ms comes as 1.001 s, which is no exact number; the event of 0 at the end counts nothing."""
    account = ThrottleAccount()
    count = confluent_kafka_config({}, account, side="write")["throttle_cb"]
    for throttle_ms in (1_001, 29, 0):
        count(Event(throttle_ms / 1_000))
    (totals,) = account.totals()
    assert (totals.throttled_ms, totals.responses) == (1_030, 2)


def test_the_programs_own_callback_stays() -> None:
    """It gets every event, and the given configuration is not touched."""
    events: list[Event] = []
    config: dict[str, Any] = {"throttle_cb": events.append}
    merged = confluent_kafka_config(config, ThrottleAccount(), side="read")
    merged["throttle_cb"](Event(0.5))
    merged["throttle_cb"](Event(0))
    assert [each.throttle_time for each in events] == [0.5, 0]
    assert config["throttle_cb"] == events.append


@pytest.mark.parametrize(
    ("config", "user", "client"),
    [
        ({}, None, ("", "rdkafka")),
        ({"sasl.username": "alice", "client.id": "etl"}, None, ("alice", "etl")),
        ({"sasl.username": "alice"}, "CN=alice", ("CN=alice", "rdkafka")),
    ],
)
def test_the_client_is_known_by_its_configuration(
    config: dict[str, Any], user: str | None, client: tuple[str, str]
) -> None:
    """A user can be given who is not in it, such as one of a certificate."""
    account = ThrottleAccount()
    confluent_kafka_config(config, account, side="read", user=user)
    assert account.totals()[0].client == (*client, "read")


def test_the_default_client_id_is_the_librarys() -> None:
    """Its own statistics say what it calls itself when nothing is configured, which is what a quota sees."""
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
def test_the_library_takes_the_configuration(make: Callable[[dict[str, Any]], object]) -> None:
    """It refuses what it does not know."""
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    make(confluent_kafka_config(config, ThrottleAccount(), side="write"))
