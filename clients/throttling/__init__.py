"""
Behavior of a client that a broker throttles (KIP-219, KIP-599), without a client or a network.

`ClientConnection` waits as Kafka's clients do, `throttle_time_sensor` keeps their metrics, `MutationCall` repeats what
a quota refused, and `mutate` does all of it around a function that sends requests.
"""

from .connection import ClientConnection, ClientKind, least_loaded, throttle_time_sensor
from .mutation import ApiError, MutationCall, RetryOptions
from .send import MutationAnswer, mutate
from .waiting import client_waits, first_waiting_version, has_throttle_time

__all__ = [
    "ApiError",
    "ClientConnection",
    "ClientKind",
    "MutationAnswer",
    "MutationCall",
    "RetryOptions",
    "client_waits",
    "first_waiting_version",
    "has_throttle_time",
    "least_loaded",
    "mutate",
    "throttle_time_sensor",
]
