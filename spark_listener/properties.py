"""What can be set: by arguments of `attach`, and by properties of Spark."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TypedDict

from . import values
from .errors import InvalidProperty
from .values import Reading

PREFIX = "spark.quotascope."
SOURCES = ("auto", "pull", "callbacks", "streaming", "event_log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One setting."""

    name: str
    """What follows `PREFIX`."""
    default: str
    """As the documentation shows it; it is what is used when nothing is set."""
    read: Reading
    meaning: str

    @property
    def key(self) -> str:
        """Spark's property."""
        return PREFIX + self.name

    @property
    def argument(self) -> str:
        """The argument of `attach`."""
        return re.sub(r"\.|(?=[A-Z])", "_", self.name).lower()


_MOST_PORTS = 65_535
_TIME = values.seconds(0.05, 3_600)

PROPERTIES: tuple[Property, ...] = (
    Property(
        name="enabled",
        default="false",
        read=values.flag,
        meaning="Whether the hook and the runner attach a listener. `attach` does so anyway.",
    ),
    Property(
        name="source",
        default="auto",
        read=values.one_of(*SOURCES),
        meaning="Where events come from: auto takes the best that works; or pull, callbacks, streaming, event_log.",
    ),
    Property(
        name="app",
        default="`spark.app.name`",
        read=values.text,
        meaning="The label `app` of every series.",
    ),
    Property(
        name="intervalSeconds",
        default="1",
        read=_TIME,
        meaning="How often events are fetched.",
    ),
    Property(
        name="queueCapacity",
        default="10000",
        read=values.number(100, 1_000_000),
        meaning="Events that wait in the driver's JVM at most, at 5 kB of its heap each; more are lost, and counted.",
    ),
    Property(
        name="successes",
        default="false",
        read=values.flag,
        meaning="Fetch successful tasks as well, instead of only counting them. No metric needs it.",
    ),
    Property(
        name="eventLog",
        default="under Spark Connect, the application's in `spark.eventLog.dir`",
        read=values.text,
        meaning="The event log to follow: of this application, readable here. Used where the driver's JVM cannot be reached, or as source=event_log.",
    ),
    Property(
        name="shipTaskFiles",
        default="true",
        read=values.flag,
        meaning="Send the modules that tasks import to the executors.",
    ),
    Property(
        name="summaryFile",
        default="none",
        read=values.text,
        meaning="File for the final account, which `quotascope spark report --summary` reads; `{app_id}` is replaced.",
    ),
    Property(
        name="cluster",
        default="none",
        read=values.text,
        meaning="The Kafka cluster as the exporter's configuration calls it: a label of every series.",
    ),
    Property(
        name="http.enabled",
        default="true",
        read=values.flag,
        meaning="Whether the driver serves a page to Prometheus.",
    ),
    Property(
        name="http.port",
        default="0",
        read=values.number(0, _MOST_PORTS),
        meaning="Port of the page; 0 takes a free one.",
    ),
    Property(
        name="http.bindAddress",
        default="`spark.driver.bindAddress`, else `spark.driver.host`",
        read=values.text,
        meaning="Where the page listens.",
    ),
    Property(
        name="http.host",
        default="`spark.driver.host`",
        read=values.text,
        meaning="The host name of the driver in the entry for Prometheus.",
    ),
    Property(
        name="fileSd.path",
        default="none",
        read=values.text,
        meaning="File of the entry for `file_sd_configs`, ending in .json; `{app_id}` is replaced.",
    ),
    Property(
        name="otlp.enabled",
        default="true with an endpoint",
        read=values.flag,
        meaning="Whether to push over OTLP; needs the extra `otlp`.",
    ),
    Property(
        name="otlp.endpoint",
        default="OpenTelemetry's environment variables",
        read=values.text,
        meaning="Where to push, a URL.",
    ),
    Property(
        name="otlp.protocol",
        default="http/protobuf",
        read=values.one_of("http/protobuf", "grpc"),
        meaning="How to push: http/protobuf or grpc.",
    ),
    Property(
        name="otlp.secretHeaders",
        default="none",
        read=values.text,
        meaning="`name=value,name=value`, values as in URLs. Spark hides properties with secret in their names.",
    ),
    Property(
        name="otlp.intervalSeconds",
        default="60, or `OTEL_METRIC_EXPORT_INTERVAL`",
        read=_TIME,
        meaning="From one push to the next; the last one comes when the job ends.",
    ),
    Property(
        name="jvm.intervalSeconds",
        default="1",
        read=_TIME,
        meaning="How often the executor plugin reads each JVM's Kafka clients. Read by the plugin itself: no argument of `attach` changes it.",
    ),
)
"""All of them, in the order of the documentation."""


class Options(TypedDict, total=False):
    """The arguments of `attach`, each with the meaning of the property of the same name."""

    enabled: bool
    source: str
    app: str
    interval_seconds: float
    queue_capacity: int
    successes: bool
    event_log: str
    ship_task_files: bool
    summary_file: str
    cluster: str
    http_enabled: bool
    http_port: int
    http_bind_address: str
    http_host: str
    file_sd_path: str
    otlp_enabled: bool
    otlp_endpoint: str
    otlp_protocol: str
    otlp_secret_headers: str
    otlp_interval_seconds: float
    jvm_interval_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What of it `attach` itself goes by."""

    enabled: bool = False
    source: str = "auto"
    app: str | None = None
    interval_seconds: float = 1.0
    queue_capacity: int = 10_000
    successes: bool = False
    event_log: str | None = None
    ship_task_files: bool = True
    summary_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What is set, all told."""

    settings: Settings
    texts: Mapping[str, str]
    """The properties that can be used, arguments among them, by their keys."""
    problems: tuple[InvalidProperty, ...]
    """What cannot be used; the defaults hold in its place."""


def resolve(properties: Mapping[str, str], options: Mapping[str, object]) -> Resolved:
    """
    Put arguments before properties and properties before defaults. Never raises.

    Args:
        properties: of Spark; those that are not ours are left alone.
        options: arguments by their names; None counts as not given.

    """
    by_argument = {each.argument: each for each in PROPERTIES}
    given = {
        by_argument[name].key if name in by_argument else name: _text(value)
        for name, value in options.items()
        if value is not None
    }
    ours = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    return _checked({**ours, **given})


def _checked(texts: Mapping[str, str]) -> Resolved:
    by_key = {each.key: each for each in PROPERTIES}
    good: dict[str, str] = {}
    known: dict[str, object] = {}
    problems = list(_unknown(texts, by_key))
    for key in texts.keys() & by_key:
        try:
            known[by_key[key].argument] = by_key[key].read(texts[key])
            good[key] = texts[key]
        except ValueError as error:
            problems.append(InvalidProperty(key, str(error)))
    names = {field.name for field in fields(Settings)}
    mine = {name: value for name, value in known.items() if name in names}
    return Resolved(
        settings=Settings(**mine),  # type: ignore[arg-type] # each was read by its property
        texts=good,
        problems=tuple(sorted(problems, key=str)),
    )


def _unknown(
    texts: Mapping[str, str], by_key: Mapping[str, Property]
) -> Iterator[InvalidProperty]:
    names = [each.name for each in PROPERTIES]
    for key in texts.keys() - by_key:
        close = difflib.get_close_matches(key.removeprefix(PREFIX), names, n=1)
        hint = f"; is {PREFIX}{close[0]} meant?" if close else ""
        yield InvalidProperty(key, f"there is no such setting{hint}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
