import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from kafka.metrics import MetricConfig, Metrics
from kafka.net.metrics import KafkaConnectionMetrics

from quotascope.clients.accounting import Side, ThrottleAccount, kafka_python_config, watch

CLASSES: Mapping[Side, Any] = {
    "read": kafka.KafkaConsumer,
    "write": kafka.KafkaProducer,
    "admin": kafka.KafkaAdminClient,
}


def metrics_of(client_id: str) -> Metrics:
    return Metrics(MetricConfig(tags={"client-id": client_id}))


def client_of(metrics: Metrics | None) -> SimpleNamespace:
    """As far as `watch` looks, a client of the library."""
    config = {"client_id": "etl", "sasl_plain_username": "alice"}
    return SimpleNamespace(config=config, _metrics=metrics)


@pytest.mark.parametrize("side", CLASSES)
def test_the_library_still_has_what_is_used(side: Side) -> None:
    """A version of kafka-python without this inside cannot be counted: pin another one, or change the adapter."""
    assert callable(CLASSES[side].DEFAULT_CONFIG["kafka_client"])
    made: list[dict[str, Any]] = []

    def connect(**configs: Any) -> object:
        made.append(configs)
        raise InterruptedError

    own = {"client_id": "etl", "kafka_client": connect}
    with pytest.raises(InterruptedError):
        CLASSES[side](**kafka_python_config(own, ThrottleAccount(), side=side))
    (configs,) = made
    assert configs["client_id"] == "etl"
    assert "throttle-time-total" in {each.name for each in configs["metrics"].metrics}


def test_each_recorded_response_is_counted() -> None:
    """The sensor of each connection is a child of the one that counts, whichever is made first; `metrics()` has the sum."""
    for early in (True, False):
        account, metrics = ThrottleAccount(), metrics_of("etl")
        before = None if early else KafkaConnectionMetrics(metrics, "producer", 1)
        assert watch(client_of(metrics), account, side="write")
        sensors = before or KafkaConnectionMetrics(metrics, "producer", 1)
        for throttle_ms in (0, 250, 0, 40):
            sensors.throttle_time.record(throttle_ms)
        (totals,) = account.totals()
        assert totals.client == ("alice", "etl", "write")
        assert (totals.throttled_ms, totals.responses) == (290, 2)
        shown = {name.name: each.value() for name, each in metrics.metrics.items()}
        assert (shown["throttle-time-total"], shown["throttle-time-max"]) == (290, 250)


def test_nothing_is_counted_twice(caplog: pytest.LogCaptureFixture) -> None:
    """A client is watched once, whatever account asks again; a user can be given, such as one of a certificate."""
    metrics = metrics_of("etl")
    first, second = ThrottleAccount(), ThrottleAccount()
    assert watch(client_of(metrics), first, side="read", user="CN=etl")
    with caplog.at_level(logging.WARNING):
        assert not watch(client_of(metrics), second, side="read")
    assert "already exists" in caplog.text
    KafkaConnectionMetrics(metrics, "", 1).throttle_time.record(5)
    assert [(account.totals()[0].client.user, account.totals()[0].throttled_ms) for account in (first, second)] == [
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
    """It is a warning, and no exception for the program."""
    with caplog.at_level(logging.WARNING):
        assert not watch(client, ThrottleAccount(), side="read")
    assert reason in caplog.text
