"""Counting for clients of confluent-kafka, which calls a function with each throttle time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .account import ClientAccount, Side, ThrottleAccount

_DEFAULT_CLIENT_ID = "rdkafka"  # librdkafka: client.id


class ThrottleEvent(Protocol):
    """Event that confluent-kafka passes to `throttle_cb`."""

    throttle_time: float
    """Throttle time in seconds."""


def confluent_kafka_config(
    config: Mapping[str, Any], account: ThrottleAccount, *, side: Side, user: str | None = None
) -> dict[str, Any]:
    """
    Return the configuration of a client with a `throttle_cb` that counts.

    A callback that was set before is called as well.

    librdkafka calls it for each response with a throttle time, and once with 0 when that is over; from `poll`, `flush`
    and `consume` only, so poll once more before the numbers are read for the last time.

    Args:
        config: of a Producer, a Consumer or an AdminClient.
        account: where to count.
        side: read for a Consumer, write for a Producer, admin for an AdminClient.
        user: the principal; by default `sasl.username`, and empty when that is not set.

    """
    client = client_account(config, account, side, user)
    callback: Callable[[ThrottleEvent], object] | None = config.get("throttle_cb")

    def count(event: ThrottleEvent) -> None:
        client.throttled(round(event.throttle_time * 1_000))
        if callback is not None:
            callback(event)

    return {**config, "throttle_cb": count}


def client_account(config: Mapping[str, Any], account: ThrottleAccount, side: Side, user: str | None) -> ClientAccount:
    """Return the account of the client that has this configuration."""
    name = config.get("sasl.username") if user is None else user
    client_id = config.get("client.id")  # None has librdkafka take its default
    return account.client(str(name or ""), str(_DEFAULT_CLIENT_ID if client_id is None else client_id), side)
