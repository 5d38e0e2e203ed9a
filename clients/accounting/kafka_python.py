"""
Counting for clients of kafka-python: its network layer records the throttle time of every response in one sensor.

What the sensor keeps is an average and a maximum of a window. Here it gets a sum. Its name and the attribute that leads
to it are kafka-python's own affair: `tests/clients/accounting/test_account.py` fails when a new version moves them, and
a client that cannot be watched works as before, after a warning in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .account import ClientAccount, Side, ThrottleAccount

_LOG = logging.getLogger(__name__)
_SENSOR = "throttle-time"
_NAME = "throttle-time-total"
_GROUP = "quotascope"
_CLASSES = {
    "read": "KafkaConsumer",
    "write": "KafkaProducer",
    "admin": "KafkaAdminClient",
}


class _Sensor(Protocol):
    def add(self, metric_name: object, stat: object) -> None: ...


class _Metrics(Protocol):
    """The part of kafka-python's `Metrics` that is used."""

    def metric_name(self, name: str, group: str, description: str) -> object: ...

    def sensor(self, name: str) -> _Sensor: ...


def kafka_python_config(
    config: Mapping[str, Any], account: ThrottleAccount, *, side: Side, user: str | None = None
) -> dict[str, Any]:
    """
    Return the configuration of a client with a `kafka_client` that counts every throttle time from the first on.

    Args:
        config: of a KafkaProducer, a KafkaConsumer or a KafkaAdminClient.
        account: where to count.
        side: read for a KafkaConsumer, write for a KafkaProducer, admin for a KafkaAdminClient.
        user: the principal; by default `sasl_plain_username`, and empty when that is not set.

    """
    connect = config.get("kafka_client") or _default_connect(side)

    def watched(**configs: Any) -> object:  # noqa: ANN401 - the whole configuration
        _feed(configs.get("metrics"), client_account(configs, account, side, user))
        return connect(**configs)

    return {**config, "kafka_client": watched}


def watch(kafka_client: object, account: ThrottleAccount, *, side: Side, user: str | None = None) -> bool:
    """
    Count the throttle times of an existing client from now on; return False if the client does not allow it.

    It is not, and a warning says so, when the client is watched already, keeps no metrics (`metrics_enabled`) or is of
    a version that is built otherwise. The arguments are those of `kafka_python_config`.
    """
    config = getattr(kafka_client, "config", {})
    client = client_account(config, account, side, user)
    return _feed(getattr(kafka_client, "_metrics", None), client)


def _default_connect(side: Side) -> Callable[..., object]:
    import kafka  # noqa: PLC0415 - an optional library

    connect: Callable[..., object] = getattr(kafka, _CLASSES[side]).DEFAULT_CONFIG["kafka_client"]
    return connect


def client_account(config: Mapping[str, Any], account: ThrottleAccount, side: Side, user: str | None) -> ClientAccount:
    """Return the account of the client that has this configuration."""
    name = config.get("sasl_plain_username") if user is None else user
    return account.client(str(name or ""), str(config.get("client_id") or ""), side)


def _feed(metrics: _Metrics | None, client: ClientAccount) -> bool:
    """
    Add the account to the sensor; return False if there are no metrics.

    The first connection adds its own statistics.
    """
    if metrics is None:
        return _not_counted("it keeps no metrics")
    try:
        name = metrics.metric_name(_NAME, _GROUP, "The sum of all throttle times in ms.")
        metrics.sensor(_SENSOR).add(name, _Total(client))
    except (AttributeError, TypeError, ValueError) as error:
        return _not_counted(str(error))
    return True


def _not_counted(reason: str) -> bool:
    _LOG.warning("throttle times of a kafka-python client are not counted: %s", reason)
    return False


class _Total:
    """A statistic of kafka-python (its `AbstractMeasurableStat`): the sum of what is recorded."""

    __slots__ = ("_client",)

    def __init__(self, client: ClientAccount) -> None:
        self._client = client

    def record(self, _config: object, value: float, _now: float) -> None:
        """Add the throttle time of a response in ms."""
        self._client.throttled(int(value))

    def measure(self, _config: object, _now: float) -> float:
        """Return the sum in ms."""
        return float(self._client.totals.throttled_ms)
