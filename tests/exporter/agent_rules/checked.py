"""Configurations of jmx_exporter and what a check reports of them."""

from __future__ import annotations

from quotascope.exporter.agent_rules import Checked, check, configurations

TWO_RULES = """
rules:
- pattern: kafka.server<type=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$3
  labels: {resource: "$1", clientId: "$2"}
- pattern: kafka.server<type=(.+), user=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$4
  labels: {resource: "$1", user: "$2", clientId: "$3"}
"""
"""The quota rules of jmx_exporter's example until 2023: none for users, and the first takes the beans of the second."""

CLIENT = """
rules:
- pattern: "kafka.server<type=(Produce|Fetch|Request), user=(.+), client-id=(.+)><>(.+):"
  name: kafka_server_quota_$1_$4
  labels: {user: "$2", client: "$3"}
"""

TYPE = """
rules:
- pattern: kafka.server<type=(.+), user=(.+), client-id=(.+)><>throttle-time
  name: kafka_server_quota_throttle_time
  type: GAUGE
  labels: {type: "$1", user: "$2", client_id: "$3"}
- pattern: kafka.server<type=(.+), user=(.+), client-id=(.+)><>byte-rate
  name: kafka_server_quota_byte_rate
  type: GAUGE
  labels: {type: "$1", user: "$2", client_id: "$3"}
"""

KRAFT = "rules:\n- {pattern: 'kafka.server<type=(.+)><>([a-z-]+)', name: kafka_server_$1_$2}\n" + TWO_RULES[7:]
"""Rules of jmx_exporter's example for KRaft, where a generic rule stands before the others."""


def checked(text: str) -> Checked:
    (config,) = configurations(text, "file")
    return check(config)
