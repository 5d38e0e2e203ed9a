"""Settings of the listener: arguments of `attach`, which are also properties of Spark."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from .errors import InvalidProperty

PREFIX: Final = "spark.quotascope."
SOURCES: Final = ("auto", "pull", "callbacks", "streaming", "event_log")
PROTOCOLS: Final = ("http/protobuf", "grpc")

Option = str | float | bool | None
"""Value of an argument of `attach`; None stands for the default."""
Parse = Callable[[str], object]
"""Function from a text to a value; raises `ValueError`, which says what was expected."""


def text(value: str) -> str:
    """Return a text that is not empty."""
    if not value.strip():
        raise ValueError("expected a text, got nothing")
    return value


def flag(value: str) -> bool:
    """Return True or False for a text in any case, as Spark reads its own flags."""
    word = value.strip().lower()
    if word not in {"true", "false"}:
        raise ValueError(f"expected true or false, got {_quoted(value)}")
    return word == "true"


_MOST_DIGITS: Final = 20


def number(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of a whole number within bounds."""

    def parse(value: str) -> int:
        """Return the number in a text."""
        plain = value.strip()
        # for thousands of digits, Python raises an error with a message of its own
        digits = plain.isascii() and plain.isdecimal() and len(plain) < _MOST_DIGITS
        if digits and minimum <= int(plain) <= maximum:
            return int(plain)
        raise ValueError(f"expected a whole number from {minimum} to {maximum}, got {_quoted(value)}")

    return parse


def seconds(minimum: float, maximum: float) -> Callable[[str], float]:
    """Return a parser of a duration in seconds within bounds."""

    def parse(value: str) -> float:
        """Return the seconds in a text."""
        try:
            time = float(value)
        except ValueError:
            time = math.nan
        if minimum <= time <= maximum:
            return time
        raise ValueError(f"expected seconds from {minimum:g} to {maximum:g}, got {_quoted(value)}")

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser of one of a few words."""

    def parse(value: str) -> str:
        """Return the word in a text."""
        if value.strip() in choices:
            return value.strip()
        raise ValueError(f"expected {', '.join(choices)}, got {_quoted(value)}")

    return parse


def _quoted(value: str) -> str:
    """Return a value in quotes for a message, cut if it is long."""
    return repr(value if len(value) <= 40 else value[:39] + "…")  # noqa: PLR2004 - enough to recognize it


def _json_file(value: str) -> str:
    """Return the name of a target file. Raises `ValueError`."""
    if not value.endswith(".json"):
        raise ValueError("the name must end in .json, or Prometheus does not read the file")
    return value


def _url(value: str) -> str:
    """Return a URL of http or https; messages do not quote it, as it may hold a password or a key."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port  # raises ValueError unless it is a number
    except ValueError:
        good = False
    if not good or parts.username is not None:
        raise ValueError("expected a URL such as http://collector:4318, without a user name")
    return value


def _headers(value: str) -> Mapping[str, str]:
    """Return headers from `name=value,name=value`, values percent-encoded; messages do not quote them."""
    headers: dict[str, str] = {}
    for pair in filter(str.strip, value.split(",")):
        name, equals, content = (part.strip() for part in pair.partition("="))
        content = unquote(content)
        if not (equals and name and name.isascii() and content.isascii() and (content.isprintable())):
            raise ValueError("expected name=value,name=value in printable ASCII")
        if name.lower() in headers:
            raise ValueError("has a header twice, in whatever case")
        headers[name.lower()] = content
    return headers


_PERIOD = seconds(0.05, 3_600)


def _setting(
    name: str, parse: Parse, meaning: str, default: Option = None, default_text: str = "none", *, secret: bool = False
) -> Any:  # noqa: ANN401 - the type of the field that it is assigned to
    """
    Declare a setting.

    Args:
        name: name of the property, without `PREFIX`.
        parse: checks and converts a text.
        meaning: meaning, for the documentation.
        default: the value if it is not set.
        default_text: the default in the documentation, if it is None.
        secret: keep it out of `repr`.

    """
    if default is not None:
        default_text = str(default).lower().removesuffix(".0")
    setting = {"key": PREFIX + name, "parse": parse, "meaning": meaning, "shown": default_text}
    return dataclasses.field(default=default, repr=not secret, metadata=setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """All settings, in the order of the documentation. Fields are the arguments of `attach`."""

    enabled: bool = _setting("enabled", flag, "Whether the hook and the runner attach a listener.", default=False)
    source: str = _setting(
        "source",
        one_of(*SOURCES),
        "Where events come from: auto, pull, callbacks, streaming or event_log.",
        default="auto",
    )
    app: str | None = _setting("app", text, "Label `app` of every series.", default_text="`spark.app.name`")
    interval_seconds: float = _setting("intervalSeconds", _PERIOD, "Interval between fetches of events.", default=1.0)
    queue_capacity: int = _setting(
        "queueCapacity",
        number(100, 1_000_000),
        "Most events that wait in the driver's JVM, at 5 kB of heap each; others are lost and counted.",
        default=10_000,
    )
    successes: bool = _setting("successes", flag, "Fetch successful tasks, too; no metric needs them.", default=False)
    event_log: str | None = _setting(
        "eventLog",
        text,
        "Event log of this application to follow, where the driver's JVM cannot be reached.",
        default_text="Spark Connect: from `spark.eventLog.dir`",
    )
    ship_task_files: bool = _setting(
        "shipTaskFiles", flag, "Send the modules that tasks import to the executors.", default=True
    )
    summary_file: str | None = _setting(
        "summaryFile", text, "Summary for `quotascope spark report --summary`; `{app_id}` is replaced."
    )
    cluster: str | None = _setting(
        "cluster", text, "Label `cluster` of every series, as in the exporter's configuration."
    )
    http_enabled: bool = _setting("http.enabled", flag, "Serve the metrics to Prometheus.", default=True)
    http_port: int = _setting("http.port", number(0, 65_535), "Port; a free one if 0 or in use.", default=0)
    http_bind_address: str | None = _setting(
        "http.bindAddress",
        text,
        "Address to listen on.",
        default_text="`spark.driver.bindAddress`, else `spark.driver.host`",
    )
    http_host: str | None = _setting(
        "http.host", text, "Host name of the driver in the target file.", default_text="`spark.driver.host`"
    )
    file_sd_path: str | None = _setting(
        "fileSd.path", _json_file, "Target file for `file_sd_configs`, ending in .json; `{app_id}` is replaced."
    )
    otlp_enabled: bool | None = _setting(
        "otlp.enabled", flag, "Push over OTLP (extra `spark-otlp`).", default_text="true with an endpoint"
    )
    otlp_endpoint: str | None = _setting(
        "otlp.endpoint", _url, "URL to push to.", default_text="OpenTelemetry's environment variables", secret=True
    )
    otlp_protocol: str | None = _setting(
        "otlp.protocol", one_of(*PROTOCOLS), "http/protobuf or grpc.", default_text=PROTOCOLS[0]
    )
    otlp_secret_headers: Mapping[str, str] | None = _setting(
        "otlp.secretHeaders",
        _headers,
        "`name=value,name=value`, URL-encoded; hidden in Spark's UI and event log.",
        secret=True,
    )
    otlp_interval_seconds: float | None = _setting(
        "otlp.intervalSeconds", _PERIOD, "Interval between pushes.", default_text="60, or `OTEL_METRIC_EXPORT_INTERVAL`"
    )
    jvm_interval_seconds: float = _setting(
        "jvm.intervalSeconds",
        _PERIOD,
        "Interval at which the executor plugin reads Kafka clients; no argument of `attach`.",
        default=1.0,
    )


_BY_KEY: Final = {field.metadata["key"]: field for field in dataclasses.fields(ListenerSettings)}
KEYS: Final = tuple(_BY_KEY)
"""The properties, in the order of the documentation."""


def documentation() -> list[str]:
    """Return the lines of the list in docs/guides/spark.md: property, default, meaning."""
    return [f"- `{key}` ({field.metadata['shown']}): {field.metadata['meaning']}" for key, field in _BY_KEY.items()]


def resolve(
    properties: Mapping[str, str], options: Mapping[str, object]
) -> tuple[ListenerSettings, tuple[InvalidProperty, ...]]:
    """
    Put arguments before properties and properties before defaults. Never raises.

    Args:
        properties: properties of Spark; those without `PREFIX` are ignored.
        options: arguments by their names; None counts as not given.

    Returns:
        The settings, and what cannot be used. Defaults are used instead; but if anything about OTLP cannot be used,
        nothing is pushed, rather than to another place.

    """
    keys = {field.name: key for key, field in _BY_KEY.items()}
    texts = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    for name, value in options.items():
        if value is not None:
            is_flag = isinstance(value, bool)
            texts[keys.get(name, name)] = str(value).lower() if is_flag else str(value)
    values: dict[str, Any] = {}
    problems = []
    for key, value in sorted(texts.items()):
        field = _BY_KEY.get(key)
        if field is None:
            problems.append(InvalidProperty(key, f"there is no such setting{_hint(key)}"))
            continue
        try:
            values[field.name] = field.metadata["parse"](value)
        except ValueError as error:
            problems.append(InvalidProperty(key, str(error)))
    otlp = f"{PREFIX}otlp."
    if any(problem.name.startswith(otlp) for problem in problems):
        values["otlp_enabled"] = False
    return ListenerSettings(**values), tuple(problems)


def _hint(key: str) -> str:
    """Return the question whether the most similar setting is meant; empty if none is similar."""
    names = [key.removeprefix(PREFIX) for key in KEYS]
    close = difflib.get_close_matches(key.removeprefix(PREFIX), names, n=1)
    return f"; is {PREFIX}{close[0]} meant?" if close else ""
