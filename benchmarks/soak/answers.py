"""
Answers of an agent.

The recorded answer of a real one, under another node id, with other clients and later counts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson
from benchmarks.soak.readings import Reading

from quotascope.metrics.kafka.jmx import quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

CAPTURES: Final = Path(__file__).parents[2] / "tests/exporter/captures"
_JOLOKIA_USAGE: Final = {
    "Produce": "byte-rate",
    "Fetch": "byte-rate",
    "Request": "request-time",
}
_OWN_RULES_USAGE: Final = {
    "Produce": ("produce_bytes_per_second", 1),
    "Fetch": ("fetch_bytes_per_second", 1),
    "Request": ("request_threads", 100),
}
_IN_TEXT: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_OF_CLIENTS: Final = ("user=", "client_id=", "clientId=", "client-id=", "node_id=")

Beans = dict[str, dict[str, float | None]]


class Dialect(StrEnum):
    """Agent, and its rules."""

    JOLOKIA = "jolokia"
    OWN_RULES = "quotascope_rules"
    KAFKA_2_0_0 = "kafka_2_0_0"


class Jolokia:
    """The bulk reads of Jolokia 2."""

    content_type = "text/plain;charset=utf-8"

    def __init__(self) -> None:
        path = CAPTURES / "combined/throttled.jolokia2.json"
        recorded: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
        self._beans: Beans = {
            name: attributes
            for item in recorded.values()
            for name, attributes in item["value"].items()
            if not _of_clients(name) and "app-info" not in name
        }

    def answer(self, request: bytes, node_id: int, readings: Sequence[Reading], uptime: float) -> bytes:
        """Return the body for a request's; counts follow from the seconds since the node started."""
        beans: Beans = {
            **{name: _grown(bean, uptime) for name, bean in self._beans.items()},
            f"kafka.server:type=app-info,id={node_id}": {"StartTimeMs": 1.7e12},
            **dict(map(_bean, readings)),
        }
        reads = json.loads(request)
        return orjson.dumps([_matching(beans, bulk_request["mbean"]) for bulk_request in reads])


class Text:
    """The text of jmx_exporter 1.0 with one of two files of rules."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, dialect: Dialect) -> None:
        self._own_rules = dialect is Dialect.OWN_RULES
        name = "rules/throttled.txt" if self._own_rules else "dialects/kafka_2_0_0.txt"
        recorded = (CAPTURES / name).read_text("utf-8").splitlines()
        self._lines = [line for line in recorded if not _of_clients(line)]

    def answer(self, _request: bytes, node_id: int, readings: Sequence[Reading], uptime: float) -> bytes:
        """Return the text, for any request."""
        write = _by_own_rules if self._own_rules else _by_kafka_2_0_0
        lines = [*self._lines, *write(node_id, readings), f"uptime_seconds {uptime}\n"]
        return "\n".join(lines).encode()


def answers_of(dialect: Dialect) -> Jolokia | Text:
    """Return the answers of an agent of this dialect."""
    return Jolokia() if dialect is Dialect.JOLOKIA else Text(dialect)


def _of_clients(text: str) -> bool:
    return any(tag in text for tag in _OF_CLIENTS)


def _grown(bean: Mapping[str, float | None], uptime: float) -> dict[str, float | None]:
    return {**bean, "Count": int(uptime * 3)} if "Count" in bean else dict(bean)


def _bean(reading: Reading) -> tuple[str, dict[str, float | None]]:
    tags = ("user", sanitize(reading.user)), ("client-id", reading.client_id)
    tag_text = ",".join(f"{tag}={quote_tag_value(value)}" for tag, value in tags)
    # NaN becomes null, as Jolokia writes it
    values = {
        _JOLOKIA_USAGE[reading.kind]: reading.usage,
        "throttle-time": reading.throttle_ms,
    }
    return f"kafka.server:type={reading.kind},{tag_text}", dict(values)


def _matching(beans: Beans, pattern: str) -> dict[str, object]:
    """Return Jolokia's answer to a pattern that ends with a star; the wanted attributes are not regarded."""
    start = pattern.removesuffix("*").removesuffix(",")
    value = {name: bean for name, bean in beans.items() if name.startswith(start)}
    if not value:
        return {"status": 404, "error": f"No MBean with pattern {pattern} found"}
    return {"status": 200, "timestamp": 1_795_251_780, "value": value}


def _by_own_rules(node_id: int, readings: Iterable[Reading]) -> Iterator[str]:
    yield f'kafka_quota_node_start_time_seconds{{node_id="{node_id}"}} 1.7e9'
    for client_reading in readings:
        name, divisor = _OWN_RULES_USAGE[client_reading.kind]
        labels = _labels(client_reading, "client_id")
        kind = f'quota_type="{client_reading.kind.lower()}"'
        yield f"kafka_quota_{name}{{{labels}}} {client_reading.usage / divisor}"
        yield f"kafka_quota_throttle_time_seconds{{{labels},{kind}}} {client_reading.throttle_ms / 1000}"


def _by_kafka_2_0_0(node_id: int, readings: Iterable[Reading]) -> Iterator[str]:
    about_node = f'clientId="{node_id}",resource="app-info"'
    yield f"kafka_server_quota_start_time_ms{{{about_node}}} 1.7e12"
    for client_reading in readings:
        usage = _JOLOKIA_USAGE[client_reading.kind].replace("-", "_")
        labels = f'{_labels(client_reading, "clientId")},resource="{client_reading.kind}"'
        yield f"kafka_server_quota_{usage}{{{labels}}} {client_reading.usage}"
        yield f"kafka_server_quota_throttle_time{{{labels}}} {client_reading.throttle_ms}"


def _labels(reading: Reading, client_id: str) -> str:
    tags = ("user", sanitize(reading.user)), (client_id, reading.client_id)
    return ",".join(f'{tag}="{quote_tag_value(value).translate(_IN_TEXT)}"' for tag, value in tags)
