"""The defaults and the possible settings: written down here, not read from the models."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
import yaml

from quotascope.exporter.config import Config
from quotascope.exporter.config.file import Place, parse_document
from quotascope.exporter.config.load import build_config
from quotascope.exporter.errors import ConfigError

LEAST: Final[dict[str, Any]] = {
    "sources": [{"url": "http://broker-1:8778/jolokia", "tls": {}}],
    "kafka": {"bootstrap_servers": "kafka:9092"},
    "discovery": {"kafka": {"url": "http://{host}:8778/jolokia"}, "file_sd": {"files": ["/targets/*.json"]}},
    "otlp": {},
}
"""Sections without a default, with nothing in them that need not be."""
WHOLE: Final = """
cluster:  # eu, not ''
sources:
- url: http://broker-1:8778/jolokia
  dialect: auto  # jolokia prometheus jmx_exporter quotascope_rules kafka_2_0_0 confluent jmx_default strimzi, not kafka
  name:  # broker-1, not ''
  node_id:  # 0, not -1
  timeout_seconds: 60.0  # 0.001 86400.0, not 0 86401
  max_answer_bytes: 67108864  # 1024, not 1023
  tls: {ca_file: , cert_file: , key_file: , key_password: , key_password_file: , verify: true}
  basic_auth:
  headers: {}
  header_files: {}
discovery:
  kafka:
    url: http://{host}:8778/jolokia
    controller_url:
    controllers: []
    refresh_interval_seconds: 30.0  # 0.001 86400.0, not 0 86401
  file_sd:
    files:  # not []
    - /targets/*.json
    url: http://{target}/jolokia
    match: {}
    node_id_label: node_id  # id, not ''
    refresh_interval_seconds: 5.0  # 0.001 86400.0, not 0 86401
  source:
    dialect: auto
    timeout_seconds: 60.0  # 0.001 86400.0, not 0 86401
    max_answer_bytes: 67108864  # 1024, not 1023
    tls:
    basic_auth:
    headers: {}
    header_files: {}
kafka:
  bootstrap_servers: [kafka:9092]
  security_protocol: PLAINTEXT  # SSL, not TLS
  sasl:
  tls:
  refresh_interval_seconds: 30.0  # 0.001 86400.0, not 0 86401
  timeout_seconds: 10.0  # 0.001 86400.0, not 0 86401
server:
  address: 0.0.0.0
  port: 9749  # 0 65535, not -1 65536
  listen_addresses: []
  web_config_file:
  allowed_hosts: []
  max_connections: 512  # 1 100000, not 0 100001
  max_requests: 40  # 1 100000, not 0 100001
collection:
  max_age_seconds: 1.0  # 0.0, not -0.001 .inf
  timeout_seconds: 9.0  # 0.001 86400.0, not 0 86401
  sample_every_seconds:  # 0.001 86400.0, not 0 86401
  sample_window_seconds: 60.0  # 0.001 86400.0, not 0 86401
  margin_seconds: 0.5  # 0.0, not -0.001 .inf
cardinality:
  max_entities: 10000  # 1, not 0
  max_name_bytes: 2097152  # 1024, not 1023
  include_users: []
  exclude_users: []
  include_client_ids: []
  exclude_client_ids: []
  excluded: overflow  # drop, not hide
  detail_above:  # 0.0, not -0.001 .inf
  idle_after_seconds:  # 0.001 86400.0, not 0 86401
shadow:
  file:
  max_entities: 100  # 1 10000, not 0 10001
alerts_config:
teams:
broker_capacity:
  produce_bytes_per_second:  # 0.1, not 0
  fetch_bytes_per_second:  # 0.1, not 0
  request_threads:  # 0.5, not 0
grafana_url:
otlp:
  endpoint:
  protocol:  # grpc http/protobuf, not http
  headers: {}
  header_files: {}
  tls:
  compression:  # gzip none, not zstd
  interval_seconds:  # 0.001 86400.0, not 0 86401
  timeout_seconds:  # 0.001 86400.0, not 0 86401
  max_request_bytes: 3000000  # 100000 64000000, not 99999 64000001
  resource_attributes: {}
log:
  format: auto  # human logfmt json, not text
  level: info  # debug warning error, not fatal
"""
"""
Every setting with its default, and in comments the other choices or the bounds, and the nearest values that are
refused.
"""


def loaded(place: Place = (), value: object = None) -> Config:
    """Return the smallest configuration with one more value."""
    document = copy.deepcopy(LEAST)
    if place:
        node: Any = document
        *sections, key = place
        for step in sections:
            node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
        node[key] = value
    text = yaml.safe_dump(document)
    return build_config(parse_document(text, "test.yaml", {}), "test.yaml", {})


def value_at(config: Config, place: Place) -> object:
    node: Any = config.model_dump(mode="json")
    for step in place:
        node = node[step]
    return node


def test_defaults() -> None:
    """Each setting has the expected default, on which users' monitoring rests."""
    assert loaded().model_dump(mode="json") == yaml.safe_load(WHOLE)


@pytest.mark.parametrize(
    ("place", "comment"),
    [
        (place, comment)
        for place, line in parse_document(WHOLE, "", None).lines.items()
        if place and (comment := WHOLE.splitlines()[line - 1].partition("  # ")[2])
    ],
)
def test_values_that_can_be_set(place: Place, comment: str) -> None:
    """A setting takes the values in its comment, and refuses those behind `not` by its name."""
    taken, _, refused = comment.partition("not ")
    for value in map(yaml.safe_load, taken.rstrip(", ").split()):
        assert value_at(loaded(place, value), place) == value
    for value in map(yaml.safe_load, refused.split()):
        with pytest.raises(ConfigError, match=str(place[-1])):
            loaded(place, value)


def test_a_configuration_does_not_change() -> None:
    """A checked configuration is immutable."""
    config = loaded()
    with pytest.raises(ValueError, match="frozen"):
        config.server.port = 1


@pytest.mark.parametrize(("text", "seconds"), [("250ms", 0.25), ("5s", 5), ("2m", 120), ("1h", 3600), ("1.5m", 90)])
def test_units_of_time(text: str, seconds: float) -> None:
    """Times have units as in Prometheus' own files."""
    place = "kafka", "timeout_seconds"
    assert value_at(loaded(place, text), place) == seconds
