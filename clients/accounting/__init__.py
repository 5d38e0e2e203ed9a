"""
Counters of the throttle times in the responses to the Kafka clients of a program, by client and side.

A `ThrottleAccount` counts for any number of clients; `confluent_kafka_config`, `kafka_python_config` and `watch` make
clients feed it. `quotascope.clients.reporting` shows the counts.

This package imports nothing of ours and works on Python 3.8, so that it can be sent to where a job runs.
"""

from .account import OVERFLOW, Client, ClientAccount, ClientTotals, Side, ThrottleAccount
from .confluent import confluent_kafka_config
from .kafka_python import kafka_python_config, watch

__all__ = [
    "OVERFLOW",
    "Client",
    "ClientAccount",
    "ClientTotals",
    "Side",
    "ThrottleAccount",
    "confluent_kafka_config",
    "kafka_python_config",
    "watch",
]
