"""What holds where nothing is set, and what can be set: written down here, not read from the models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import BaseModel

from quotascope.exporter.config import Config
from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import build_config
from quotascope.exporter.errors import ConfigError

URL: Final = "http://broker-1:8778/jolokia"
LEAST: Final[dict[str, Any]] = {
    "sources": [{"url": URL}],
    "kafka": {"bootstrap_servers": "kafka:9092", "tls": {}, "sasl": {"username": "u", "password": "p"}},
    "discovery": {"kafka": {"url": "http://{host}:8778/jolokia"}, "file_sd": {"files": ["/targets/*.json"]}},
    "otlp": {},
}  # fmt: skip
"""Every section, with nothing in it that need not be."""
WHOLE: Final = {**LEAST, "kafka": {**LEAST["kafka"], "security_protocol": "SASL_SSL"}}
"""The same, where the sections about Kafka's security are in use."""
_DEFAULTS: Final = """
sources.0.dialect auto
sources.0.name None
sources.0.node_id None
sources.0.timeout_seconds 60.0
sources.0.max_answer_bytes 67108864
sources.0.tls None
sources.0.basic_auth None
discovery.kafka.controller_url None
discovery.kafka.controllers ()
discovery.kafka.refresh_interval_seconds 30.0
discovery.file_sd.url http://{target}/jolokia
discovery.file_sd.match {}
discovery.file_sd.node_id_label node_id
discovery.file_sd.refresh_interval_seconds 5.0
discovery.source.dialect auto
discovery.source.timeout_seconds 60.0
discovery.source.max_answer_bytes 67108864
discovery.source.tls None
discovery.source.basic_auth None
kafka.security_protocol PLAINTEXT
kafka.sasl.mechanism PLAIN
kafka.tls.verify True
kafka.refresh_interval_seconds 30.0
kafka.timeout_seconds 10.0
server.address 0.0.0.0
server.port 9749
server.listen_addresses ()
server.web_config_file None
server.allowed_hosts ()
server.max_connections 512
server.max_requests 40
collection.max_age_seconds 1.0
collection.timeout_seconds 9.0
collection.sample_every_seconds None
collection.sample_window_seconds 60.0
collection.margin_seconds 0.5
cardinality.max_entities 10000
cardinality.include_users ()
cardinality.exclude_users ()
cardinality.include_client_ids ()
cardinality.exclude_client_ids ()
cardinality.excluded overflow
cardinality.detail_above None
cardinality.idle_after_seconds None
otlp.endpoint None
otlp.protocol None
otlp.compression None
otlp.interval_seconds None
otlp.timeout_seconds None
otlp.max_request_bytes 3000000
log.format auto
log.level info
"""
BOUNDS: Final[dict[str, tuple[float | None, float, float | None, float | None]]] = {
    "sources.0.node_id": (-1, 0, None, None),
    "sources.0.timeout_seconds": (0, 0.001, 86_400, 86_401),
    "sources.0.max_answer_bytes": (1_023, 1_024, None, None),
    "discovery.kafka.refresh_interval_seconds": (0, 0.001, 86_400, 86_401),
    "discovery.file_sd.refresh_interval_seconds": (0, 0.001, 86_400, 86_401),
    "discovery.source.timeout_seconds": (0, 0.001, 86_400, 86_401),
    "discovery.source.max_answer_bytes": (1_023, 1_024, None, None),
    "kafka.refresh_interval_seconds": (0, 0.001, 86_400, 86_401),
    "kafka.timeout_seconds": (0, 0.001, 86_400, 86_401),
    "server.port": (-1, 0, 65_535, 65_536),
    "server.max_connections": (0, 1, 100_000, 100_001),
    "server.max_requests": (0, 1, 100_000, 100_001),
    "collection.max_age_seconds": (-0.001, 0, None, None),
    "collection.timeout_seconds": (0, 0.001, 86_400, 86_401),
    "collection.margin_seconds": (-0.001, 0, None, None),
    "cardinality.max_entities": (0, 1, None, None),
    "cardinality.detail_above": (-0.001, 0, None, None),
    "otlp.max_request_bytes": (99_999, 100_000, 64_000_000, 64_000_001),
}
"""By key: too little, the least, the most, too much."""
CHOICES: Final = {
    "sources.0.dialect": "auto jolokia prometheus jmx_exporter quotascope_rules kafka_2_0_0 confluent jmx_default strimzi",
    "kafka.security_protocol": "PLAINTEXT SSL SASL_PLAINTEXT SASL_SSL",
    "cardinality.excluded": "overflow drop",
    "log.format": "auto human logfmt json",
    "log.level": "debug info warning error",
}


def loaded(key: str | None = None, value: object = None) -> Config:
    """The least configuration, with one key set."""
    document = copy.deepcopy(LEAST)
    del document["kafka"]["tls"]
    del document["kafka"]["sasl"]
    if key is not None:
        at: Any = document
        *sections, name = key.split(".")
        for step in sections:
            at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
        at[name] = value
    return built(document)


def built(document: dict[str, Any]) -> Config:
    text = yaml.safe_dump(document)
    return build_config(parse_document(text, "test.yaml", {}), "test.yaml", {})


def value_at(config: Config, key: str) -> object:
    at: Any = config
    for step in key.split("."):
        at = at[int(step)] if step.isdigit() else getattr(at, step)
    return getattr(at, "value", at)


@pytest.mark.parametrize("line", _DEFAULTS.strip().splitlines())
def test_default(line: str) -> None:
    """Users' monitoring rests on it: another default is a change that is announced."""
    key, _, expected = line.partition(" ")
    config = loaded() if "protocol" in key else built(WHOLE)
    assert str(value_at(config, key)) == expected


def test_there_is_nothing_else_to_set() -> None:
    """A setting whose default is not written down here would be noticed here."""
    known = {line.partition(" ")[0] for line in _DEFAULTS.strip().splitlines()}
    sections = {key.rpartition(".")[0] for key in known}
    config = built(WHOLE)
    for place in sections:
        section = value_at(config, place)
        assert isinstance(section, BaseModel)
        for name, field in type(section).model_fields.items():
            is_section = isinstance(getattr(section, name), BaseModel)
            if not field.is_required() and not is_section:
                default = field.get_default(call_default_factory=True)
                key = f"{place}.{name}"
                assert key in known or default is None or default == {}, key


@pytest.mark.parametrize("key", BOUNDS)
def test_bounds(key: str) -> None:
    """The last value that can be used, and the first that cannot, which is named."""
    too_little, least, most, too_much = BOUNDS[key]
    for value in filter(lambda each: each is not None, (least, most)):
        assert value_at(loaded(key, value), key) == value
    name = key.rpartition(".")[2]
    for value in filter(lambda each: each is not None, (too_little, too_much)):
        with pytest.raises(ConfigError, match=name):
            loaded(key, value)


@pytest.mark.parametrize("key", CHOICES)
def test_choices(key: str) -> None:
    """Each of the words, and no other."""
    for word in CHOICES[key].split():
        if not word.startswith("SASL"):  # these need a user
            assert value_at(loaded(key, word), key) == word
    with pytest.raises(ConfigError, match=key.rpartition(".")[2]):
        loaded(key, "anything")


def test_a_configuration_does_not_change() -> None:
    """What was checked is what is used."""
    config = loaded()
    with pytest.raises(ValueError, match="frozen"):
        config.server.port = 1


@pytest.mark.parametrize(("text", "seconds"), [("250ms", 0.25), ("5s", 5), ("2m", 120), ("1h", 3600), ("1.5m", 90)])
def test_units_of_time(text: str, seconds: float) -> None:
    """As in Prometheus' own files."""
    assert value_at(loaded("kafka.timeout_seconds", text), "kafka.timeout_seconds") == seconds


@pytest.mark.parametrize("given", [(), ("cert_file",), ("key_file",), ("cert_file", "key_file")])
def test_a_receivers_certificate_and_key_need_each_other(tmp_path: Path, given: tuple[str, ...]) -> None:
    """Both or neither; a file that is not there is an error of the configuration, not of the first push."""
    file = str(tmp_path / "x.pem")
    tls = {"ca_file": file} | dict.fromkeys(given, file)
    with pytest.raises(ConfigError, match="ca_file"):
        loaded("otlp.tls", tls)
    (tmp_path / "x.pem").touch()
    if len(given) == 1:
        with pytest.raises(ConfigError, match="give both cert_file and key_file, or neither"):
            loaded("otlp.tls", tls)
    else:
        assert value_at(loaded("otlp.tls", tls), "otlp.tls.ca_file") == tmp_path / "x.pem"
