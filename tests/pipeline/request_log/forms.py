"""Lines of Kafka as log agents, layouts and exports carry them."""

import json
from collections.abc import Callable
from typing import Final

MESSAGE: Final = "[2026-11-21 09:02:00,655] DEBUG "
LATE: Final = "2026-11-21T09:02:04.237Z"
"""When an agent got the line, 3.6 s after Kafka had written it."""
LATE_US: Final = 1_795_251_724_237_000
THREAD: Final = "data-plane-kafka-network-thread-4-ListenerName(SASL)-SASL_SSL-3"
Form = Callable[[str], str]


def _fields(**fields: object) -> Form:
    """Return JSON with fields, of which the one that is None holds the line."""

    def form(line: str) -> str:
        return json.dumps(_filled(fields, line), separators=(",", ":"))

    return form


def _filled(value: object, line: str) -> object:
    if isinstance(value, dict):
        return {name: _filled(inner, line) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, line) for inner in value]
    return line if value is None else value


FORMS: Final[dict[str, Form]] = {
    "Kafka's own": str,
    "CR and NUL at the end": lambda line: line + "\r\0",
    "a byte order mark": lambda line: "\ufeff" + line,
    "CRI": lambda line: f"2026-11-21T09:02:04.237000001Z stdout F {line}",
    "CRI with a zone": lambda line: f"2026-11-21T10:02:04.237000001+01:00 stderr F {line}",
    "CRI with tags": lambda line: f"2026-11-21T09:02:04.237000001Z stdout F:x=1 {line}",
    "kubectl logs --timestamps": lambda line: f"2026-11-21T09:02:04.237000001Z {line}",
    "kubectl logs --prefix": lambda line: f"[pod/kafka-0/kafka] {line}",
    "docker compose logs": lambda line: f"kafka-1  | {line}",
    "syslog 3164": lambda line: f"<191>Nov 21 09:02:04 broker-1 kafka[4711]: {line}",
    "syslog 5424": lambda line: f"<191>1 {LATE} broker-1 kafka 4711 - - {line}",
    "syslog 5424 with data": lambda line: f'<191>1 {LATE} broker-1 kafka 4711 ID47 [meta sequenceId="9"] {line}',
    "octets counted": lambda line: f"1234 <191>1 {LATE} broker-1 kafka - - - {line}",
    "journalctl": lambda line: f"Nov 21 09:02:04 broker-1 kafka[4711]: {line}",
    "journalctl -o short-iso": lambda line: f"2026-11-21T10:02:04+0100 broker-1 kafka[4711]: {line}",
    "journalctl -o short-unix": lambda line: f"1795251724.237000 broker-1 kafka[4711]: {line}",
    "journalctl -o export": lambda line: f"MESSAGE={line}",
    "aws logs tail": lambda line: f"2026-11-21T09:02:04.237000+00:00 kafka/broker/1 {line}",
    "logcli": lambda line: f'2026-11-21T09:02:04Z {{pod="kafka-0"}} {line}',
    "logcli -o raw with ns": lambda line: f"1795251724237000001 {line}",
    "epoch in brackets": lambda line: f"[1795251724] {line}",
    "slashes": lambda line: f"2026/11/21 09:02:04 {line}",
    "nginx's time": lambda line: f"[21/Nov/2026:09:02:04 +0000] {line}",
    "AM and PM": lambda line: f"2026-11-21 09:02:04 AM {line}",
    "docker json-file": _fields(log=None, stream="stdout", time="2026-11-21T09:02:04.237456789Z"),
    "docker json-file, line feed": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": LATE}),
    "Filebeat": _fields(
        **{"@timestamp": LATE, "log": {"offset": 7, "file": {"path": "/x.log"}}},
        message=None,
        host={"name": "broker-1"},
    ),
    "Filebeat with the original": _fields(**{"@timestamp": LATE, "event": {"original": None}, "message": None}),
    "Fluent Bit": _fields(date=1795251724.237, stream="stdout", log=None, kubernetes={"pod_name": "kafka-0"}),
    "Fluentd with tag": lambda line: f"{LATE}\tkafka.log\t" + json.dumps({"message": line}),
    "Vector": _fields(file="/x.log", host="broker-1", message=None, source_type="file", timestamp=LATE),
    "Vector of Kubernetes": _fields(kubernetes={"pod_name": "kafka-0"}, message=None, timestamp=LATE),
    "Loki": _fields(labels={"pod": "kafka-0"}, line=None, timestamp=LATE),
    "Loki's answer": _fields(stream={"pod": "kafka-0"}, values=[[str(LATE_US * 1_000), None]]),
    "GELF": _fields(version="1.1", host="broker-1", short_message=None, timestamp=1795251724.237, level=7),
    "CloudWatch": _fields(timestamp=LATE_US // 1_000, message=None, ingestionTime=LATE_US // 1_000 + 900),
    "Google Cloud": _fields(
        textPayload=None, timestamp=LATE, receiveTimestamp=LATE, resource={"labels": {"pod_name": "kafka-0"}}
    ),
    "Google Cloud's JSON": _fields(jsonPayload={"message": None}, timestamp=LATE),
    "journalctl -o json": _fields(__REALTIME_TIMESTAMP=str(LATE_US), MESSAGE=None, _HOSTNAME="broker-1"),
    "journalctl -o json, bytes": lambda line: json.dumps(
        {"__REALTIME_TIMESTAMP": str(LATE_US), "MESSAGE": list(line.encode())}
    ),
    "Splunk": _fields(preview=False, result={"_raw": None, "_time": LATE}),
    "one of an array": lambda line: json.dumps([{"message": line}]),
    "JSON in JSON": lambda line: json.dumps({"log": json.dumps({"message": line, "@timestamp": LATE}), "time": LATE}),
    "JSON in CRI": lambda line: f"2026-11-21T09:02:04.237000001Z stdout F {json.dumps({'message': line})}",
    "logfmt": lambda line: f"ts={LATE} level=debug msg={json.dumps(line)} pod=kafka-0",
    "a field of JSON over several lines": lambda line: f'      "message": {json.dumps(line)},',
    "CSV": lambda line: '{},"{}"'.format(LATE, line.replace('"', '""')),
}  # fmt: skip
"""By what writes it; each of a line in Kafka's own pattern, whose time is the only right one."""

OF_BARE_MESSAGES: Final[dict[str, Form]] = {
    "log4j2's EcsLayout": _fields(
        **{"@timestamp": "2026-11-21T09:02:00.655Z", "ecs.version": "1.2.0", "log.level": "DEBUG", "message": None},
        **{"process.thread.name": THREAD, "log.logger": "kafka.request.logger"},
    ),
    "log4j2's JsonLayout": _fields(
        instant={"epochSecond": 1795251720, "nanoOfSecond": 655000000},
        thread=THREAD,
        level="DEBUG",
        loggerName="kafka.request.logger",
        message=None,
    ),
    "JsonLayout, timeMillis": _fields(
        timeMillis=1795251720655, thread=THREAD, level="DEBUG", loggerName="kafka.request.logger", message=None
    ),
    "JsonTemplateLayout, Logstash": _fields(
        **{"@version": 1, "source_host": "b", "message": None, "thread_name": THREAD},
        **{"@timestamp": "2026-11-21T10:02:00.655+0100", "level": "DEBUG", "logger_name": "kafka.request.logger"},
    ),
    "GelfLayout": _fields(
        version="1.1",
        host="b",
        timestamp=1795251720.655,
        level=7,
        _thread="x",
        _threadName=THREAD,
        short_message=None,
    ),
    "ECS in docker": lambda line: json.dumps(
        {
            "log": json.dumps({"@timestamp": "2026-11-21T09:02:00.655Z", "message": line, "thread": THREAD}) + "\n",
            "stream": "stdout",
            "time": LATE,
        }
    ),
    "Strimzi's pattern": lambda line: (
        "2026-11-21 09:02:00,655 DEBUG [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] "
        f"request.logger:313 - {line}"),
    "log4j's DATE": lambda line: (
        f"21 Nov 2026 09:02:00,655 [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "log4j's COMPACT": lambda line: (
        f"20261121090200655 [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "log4j's ISO8601_BASIC": lambda line: (
        f"20261121T090200,655 [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "log4j's UNIX_MILLIS": lambda line: (
        f"{LATE} 1795251720655 [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "a colon before the ms": lambda line: (
        f"2026-11-21 09:02:00:655 [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "a zone": lambda line: (
        f"2026-11-21 09:02:00,655 UTC [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
    "a zone's name": lambda line: (
        "2026-11-21 "
        f"10:02:00,655 Europe/Berlin [data-plane-kafka-network-thread-4-ListenerName(TLS-9093)-SSL-3] {line}"),
}  # fmt: skip
"""Layouts and patterns that write 09:02:00.655 UTC of 2026-11-21 and the thread of node 4 around a bare message."""
