"""Answers that are no metrics of a Kafka node: what they are, where that is certain."""

from __future__ import annotations

import re
from typing import Final

from ..errors import SourceUnreadable
from .dialects import has_line

_BEGINNING: Final = 4096
"""Bytes at the beginning of an answer that are searched for signs of another program."""
_MARKUP: Final = re.compile(
    rb"<(?:!doctype\s+html|!--|\?xml|/?(?:html|head|body|title|meta|script|h1|div|form|a|p|pre)\b)", re.IGNORECASE
)
_WEB_PAGE: Final = "this is a web page, not metrics: the usual path of a Prometheus agent is /metrics"
_SIGN_IN: Final = re.compile(rb"type\s*=\s*[\"']?password|sign[ -]?in|log[ -]?in\b", re.IGNORECASE)
_JSON: Final = (
    "this is JSON, not Prometheus text: a Jolokia agent is a source of dialect jolokia, and its usual path is "
    "/jolokia; the usual path of a Prometheus agent is /metrics"
)
_QUOTED_NAME: Final = re.compile(rb'\{"(?:[^"\\]|\\.)*"[ \t]*[,}]')
_QUOTED: Final = (
    "the names of its metrics stand in quotes (UTF-8 names of Prometheus 3), which quotascope does not read: "
    "turn UTF-8 names off in the agent, or in the proxy before it"
)
OWN_PAGE: Final = (
    "this is the page of a quotascope exporter, not of a broker's agent: give quotascope the agents that it reads"
)
"""
Error about the page of an exporter of ours: it has the names that our rules give agents, but is not a broker's own
word.
"""
OTHER_BROKERS: Final = ("redpanda_", "vectorized_", "kminion_")
"""Beginnings of names that look like Kafka's quota metrics behind a prefix, but belong to another program."""
_KAFKA_NODES: Final = ("kafka_server_", "kafka_controller_", "kafka_network_", "kafka_log_", "kafka_cluster_")
_FOREIGN: Final = (
    (
        ("redpanda_", "vectorized_"),
        (
            "this is Redpanda, not Apache Kafka: it reports quotas in metrics of its own (redpanda_kafka_quotas_…), "
            "which quotascope does not read"
        ),
    ),
    (
        ("kminion_",),
        (
            "this is kminion, which reports topics and consumer groups, not quotas: quotascope needs the agent in "
            "each broker (jmx_exporter, Jolokia or Strimzi's metrics-reporter)"
        ),
    ),
    (
        ("kafka_exporter_build_info", "kafka_brokers", "kafka_broker_info{"),
        (
            "this is kafka_exporter, which reports topics and consumer groups, not quotas: quotascope needs the "
            "agent in each broker (jmx_exporter, Jolokia or Strimzi's metrics-reporter)"
        ),
    ),
    (
        ("node_exporter_build_info", "node_cpu_seconds_total{", "node_uname_info{"),
        (
            "this is node_exporter, which reports the machine, not Kafka: quotascope needs the agent in each "
            "broker, which has another port (on Amazon MSK 11001 instead of 11002)"
        ),
    ),
    (
        ("kafka_connect_",),
        "this is the agent of a Kafka Connect worker, not of a broker: quotascope needs the agent in each broker",
    ),
    (
        ("prometheus_build_info{",),
        (
            "this is the page of Prometheus about itself, not that of a broker's agent: to read the brokers that it "
            "scrapes, configure a source `prometheus` (--source prometheus=URL) without /metrics"
        ),
    ),
)
"""Beginnings of lines that only one program's page has, and what to do; asked in this order."""


def refuse_other_formats(answer: bytes | bytearray) -> None:
    """Raise ``SourceUnreadable`` for an answer that is a web page or JSON."""
    begin = answer[:_BEGINNING].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith((b"{", b"[")) and not _QUOTED_NAME.match(begin):
        raise SourceUnreadable(_JSON)
    if begin.startswith(b"<"):
        login = "; it asks for a login" if _SIGN_IN.search(answer[: 1 << 16]) else ""
        raise SourceUnreadable(f"{_WEB_PAGE}{login}" if _MARKUP.match(begin) else _WEB_PAGE)


def foreign(page: str) -> str | None:
    """Return the error of a page, which begins with a line end, if it is certainly of another program; else None."""
    if has_line(page, _KAFKA_NODES):
        return None
    if has_line(page, ('{"',)):
        return _QUOTED
    return next((text for marks, text in _FOREIGN if has_line(page, marks)), None)
