"""
Options that several commands share, each declared once: a flag has one meaning in all commands.

A command chooses the default, and where it is needed the Python type; name, metavar, help and environment variable
belong to the flag. A group of options is one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeGuard, get_type_hints

import typer

if TYPE_CHECKING:
    from datetime import tzinfo

    from _typeshed import DataclassInstance

    from quotascope.metrics.kafka.release import KafkaRelease

READING = "What is read"
KAFKA = "Kafka's Admin API, which knows the configured quotas"
SERVING = "What is served, and where"
PUSHING = "Push over OTLP"
ENTITY = "Entity"
OUTPUTS = "What is written"

kafka_option = partial(typer.Option, rich_help_panel=KAFKA)
serving_option = partial(typer.Option, rich_help_panel=SERVING)
reading_option = partial(typer.Option, rich_help_panel=READING)
entity_option = partial(typer.Option, rich_help_panel=ENTITY)
output_option = partial(typer.Option, rich_help_panel=OUTPUTS)

USER = entity_option("--user", metavar="NAME", help="Name of the principal, as in the quota: alice for User:alice.")
PORT = serving_option(
    metavar="PORT", min=0, max=65_535, help="Port to listen on; 0 takes a free one. The exporter's is 9749 by default."
)
SHADOW = reading_option(
    "--shadow",
    metavar="FILE",
    help=(
        "Show what brokers would do under the candidates in this file, enforced by no broker "
        "(documentation: From an idea to a quota). A running exporter has its own."
    ),
)
TEAMS = reading_option(
    "--teams",
    metavar="FILE",
    help="Show the team of each client, or the sums of each team, by the teams in this file (documentation: Teams).",
)
OTLP_ENDPOINT = typer.Option(
    "--otlp-endpoint",
    metavar="URL",
    help="Also push to this OpenTelemetry receiver, such as http://collector:4318.",
    rich_help_panel=PUSHING,
)
PROMETHEUS = typer.Option(
    "--prometheus",
    metavar="URL",
    help="Ask a Prometheus that has the past, or Thanos or Mimir (…/prometheus), instead of reading a folder.",
    rich_help_panel="The Prometheus that has the past",
)
GRAFANA_URL = typer.Option("--grafana-url", metavar="URL", help="Address of the Grafana that has the dashboards.")
STRIMZI_CLUSTER = output_option(
    metavar="NAME", help="Name of the Kafka resource, for the label strimzi.io/cluster of KafkaUser manifests."
)

ClientId = Annotated[str | None, entity_option("--client-id", metavar="ID", help="The client.id, as clients send it.")]
ByUser = Annotated[
    bool,
    typer.Option("--by-user", help="Add up the client ids of each user, as those of Spark change with each run."),
]
QuotasFrom = Annotated[
    Path | None,
    typer.Option(
        "--quotas",
        metavar="FILE",
        help=(
            "Take the quotas of this YAML file (- for standard input), as `quotas export` writes it, instead of the "
            "cluster's."
        ),
    ),
]
Top = Annotated[int, typer.Option(min=0, metavar="N", help="How many entities to show.")]
Every = Annotated[str, typer.Option("--every", metavar="TIME", help="How often to read again, such as 5s or 1m.")]
Apply = Annotated[bool, typer.Option("--apply", help="Make the changes. Without it, only show them.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Html = Annotated[
    Path | None, output_option(metavar="FILE", help="A page with tables and plots that needs no other file.")
]

# Of the commands of the pipeline

_PIPELINE = {"pyarrow": "pyarrow", "msgspec": "msgspec", "deltalake": "deltalake", "google.protobuf": "protobuf"}
"""Packages of the extra `pipeline`, by the module that they have."""


def named_folder(folder: str | None) -> str | None:
    """
    Return a folder. Raises ``typer.BadParameter`` for an empty one, and for a file.

    An unset variable of a shell is empty, and tables would lie at the root.
    """
    if folder is not None and not folder.strip():
        raise typer.BadParameter("a folder or URI is needed, and this is empty")
    if folder is not None and Path(folder).is_file():
        raise typer.BadParameter(f"{folder[:200]!r} is a file: name a folder")
    return folder


FOLDER = typer.Argument(
    metavar="FOLDER", help="What `quotascope ingest --into` wrote: a folder or URI.", callback=named_folder
)
Folder = Annotated[str, FOLDER]
INTO = typer.Option(
    metavar="FOLDER",
    help="Created if needed; or a URI. What was read before is not added again.",
    callback=named_folder,
)
EngineName = Annotated[
    Literal["auto", "local", "spark"],
    typer.Option(
        "--engine",
        help=(
            "What does the work: this process, or Spark (needs pyspark). auto takes Spark under spark-submit and for "
            "large input. The results are the same."
        ),
    ),
]
IoThreads = Annotated[
    int | None,
    typer.Option(
        "--io-threads",
        min=1,
        max=10_000,
        metavar="N",
        help="The brokers' num.io.threads.",
        show_default="estimated from the log",
    ),
]
TimeZone = Annotated[
    str, typer.Option("--time-zone", metavar="ZONE", help="Time zone of hours and weekdays, such as Europe/Berlin.")
]
Begin = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Begin of the time to show, as ISO 8601.", show_default="as far back as is known"
    ),
]
End = Annotated[str | None, typer.Option(metavar="TIME", help="End of the time shown.", show_default="the last known")]
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        "--kafka-version",
        metavar="VERSION",
        help=(
            "Release of the brokers, 2.8 to 4.4, such as 3.7 or 3.9-zookeeper: their windows, throttle times and "
            "mutation quotas are followed."
        ),
        show_default="what the log says, else the newest",
    ),
]

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""Newest Kafka connector of Spark; pages of the documentation get it by ``make docs``."""


def check_extra() -> None:
    """Raise ``MissingExtra`` if the libraries of the pipeline are not installed."""
    from quotascope.pipeline.errors import MissingExtra

    missing = [package for module, package in _PIPELINE.items() if not _is_installed(module)]
    if missing:
        raise MissingExtra(f"this needs {', '.join(missing)}; in a clone of quotascope: pip install '.[pipeline]'")


def _is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package in a namespace that is not there either
        return False


def release_of(text: str | None) -> KafkaRelease | None:
    """
    Return the release of a version, None without one.

    Raises ``typer.BadParameter`` for a release that the engine does not follow exactly.
    """
    from quotascope.metrics.kafka.errors import MalformedName
    from quotascope.metrics.kafka.release import KafkaRelease

    if text is None:
        return None
    try:
        release = KafkaRelease.parse(text)
    except MalformedName as error:
        raise typer.BadParameter(str(error), param_hint="--kafka-version") from None
    if not release.is_exact:
        about = f"Kafka {release} is not one that quotas are followed for: {KafkaRelease.exact_words()}"
        raise typer.BadParameter(about, param_hint="--kafka-version")
    return release


def zone_of(name: str, flag: str = "--time-zone") -> tzinfo:
    """Return the time zone of a name, the value of an option. Raises ``typer.BadParameter``."""
    from datetime import UTC
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise typer.BadParameter(f"{name[:60]!r} is not a time zone; try Europe/Berlin", param_hint=flag) from None


def time_of(text: str | None, name: str, zone: tzinfo) -> float | None:
    """
    Return the Unix time in seconds of a text in ISO 8601, which is in `zone` if it names none; None for None.

    Raises ``typer.BadParameter``, also for an hour that the zone's clocks show twice or skip; a day begins with its
    first moment.
    """
    from datetime import datetime, time

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text[:60]!r} is not a time such as 2026-11-23T14:00:00Z", param_hint=name) from None
    if moment.tzinfo is None:
        # the two readings of a time (PEP 495) differ only where the clocks are set
        earlier, later = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        if earlier.utcoffset() != later.utcoffset() and moment.time() != time.min:
            both = f"{earlier.isoformat()} or {later.isoformat()}"
            raise typer.BadParameter(f"the clocks of {zone} show it twice or never: give {both}", param_hint=name)
        moment = earlier
    return moment.timestamp()


def span_of(begin: str | None, end: str | None, zone: tzinfo) -> tuple[float | None, float | None]:
    """Return both times as `time_of` does. Raises ``typer.BadParameter`` if the end is not after the beginning."""
    begin_s, end_s = time_of(begin, "--begin", zone), time_of(end, "--end", zone)
    if begin_s is not None and end_s is not None and begin_s >= end_s:
        raise typer.BadParameter("has to be later than --begin", param_hint="--end")
    return begin_s, end_s


_NAME = re.compile(r"[^\s:=]+")
"""The name in NAME=VALUE: without the blanks and colons of a header as HTTP has it."""


def named_values(
    texts: Sequence[str] | None, flag: str, form: str = "NAME=VALUE", *, may_be_empty: bool = False
) -> dict[str, str]:
    """
    Return the values by name of an option that may be repeated.

    Args:
        texts: the texts of the option, NAME=VALUE each.
        flag: the option, for messages.
        form: the form of a text, for messages.
        may_be_empty: whether a value may be empty.

    Raises:
        typer.BadParameter: a text has another form, or a name is there twice, in whatever case. The message has no
            text of the option, which may be a secret, but the name that is there twice.

    """
    values: dict[str, str] = {}
    for number, text in enumerate(texts or (), start=1):
        name, equals, value = text.partition("=")
        if not (_NAME.fullmatch(name) and equals and (value or may_be_empty)):
            raise typer.BadParameter(f"takes {form}, and number {number} has another form", param_hint=flag)
        if name.lower() in map(str.lower, values):
            raise typer.BadParameter(f"{name[:60]!r} is there twice: give one of them", param_hint=flag)
        values[name] = value
    return values


def used_flags(group: DataclassInstance, *but: str) -> list[str]:
    """Return the flags of a group whose values are not the defaults, except the flags of some fields."""
    return [
        f"--{field.name.replace('_', '-')}"
        for field in fields(group)
        if field.name not in but and getattr(group, field.name) not in (field.default, [])
    ]


def check_not_without(group: DataclassInstance, name: str) -> None:
    """Raise ``typer.BadParameter`` if options of a group are used without the option that they all belong to."""
    flags = used_flags(group, name)
    if flags and getattr(group, name) is None:
        raise typer.BadParameter(
            f"has no effect without --{name}: add that, or leave this out", param_hint=", ".join(flags)
        )


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """
    Return the command with single options in place of each parameter that is a group of options.

    A group is a dataclass whose fields are options as typer declares them, with their defaults, or groups.
    """
    declared = signature(command, eval_str=True)
    groups = {
        name: parameter.annotation for name, parameter in declared.parameters.items() if _is_group(parameter.annotation)
    }

    @wraps(command)
    def run(**values: object) -> None:
        # what is left in `values` are the options that belong to no group
        filled = {name: _filled(group, values) for name, group in groups.items()}
        command(**filled, **values)

    options: list[Parameter] = []
    for name, parameter in declared.parameters.items():
        if name in groups:
            options.extend(_options(groups[name]))
        else:
            options.append(parameter)
    # typer reads the options of a command from its signature
    run.__signature__ = declared.replace(parameters=options)  # type: ignore[attr-defined]
    return run


def _options(group: type) -> Iterator[Parameter]:
    """Yield the options of a group, and of the groups in it, as parameters of a command."""
    for name, hint, default in _fields(group):
        if _is_group(hint):
            yield from _options(hint)
        else:
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _filled(group: type, values: dict[str, object]) -> object:
    """Return the group with the values of its options, which are removed from `values`."""
    return group(
        **{name: _filled(hint, values) if _is_group(hint) else values.pop(name) for name, hint, _ in _fields(group)}
    )


def _fields(group: type) -> Iterator[tuple[str, Any, object]]:
    """Yield the name, the type with its option, and the default of each field of a group."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield field.name, hints[field.name], field.default


def _is_group(hint: object) -> TypeGuard[type]:
    """Return whether a type is a group of options."""
    return isinstance(hint, type) and is_dataclass(hint)
