"""Options that the commands of the pipeline share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from datetime import tzinfo

    from quotascope.metrics import KafkaRelease

_LIBRARIES = ("numpy", "pyarrow", "orjson", "msgspec", "deltalake", "yaml")


def named_folder(folder: str) -> str:
    """The folder, unless it is empty as an unset variable of a shell: tables would lie at the root. Raises ``typer.BadParameter``."""
    if not folder.strip():
        raise typer.BadParameter("a folder or URI is needed, and this is empty")
    return folder


Folder = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER",
        help="What `quotascope ingest --into` wrote: a folder or URI.",
        callback=named_folder,
    ),
]
EngineName = Annotated[
    Literal["auto", "local", "spark"],
    typer.Option(
        "--engine",
        help="What does the work: this process, or Spark (needs pyspark). auto takes Spark under spark-submit and for large input. The results are the same.",
    ),
]
TimeZone = Annotated[
    str,
    typer.Option(
        "--time-zone",
        metavar="ZONE",
        help="Time zone of hours and weekdays, such as Europe/Berlin.",
    ),
]
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        "--kafka-version",
        metavar="VERSION",
        help="Release of the brokers, such as 4.3 or 4.4: up to 4.3 throttle times above 24.8 days wrap around, since 4.4 they stop there.",
        show_default="what the log says, else the newest",
    ),
]


def check_extra() -> None:
    """Raise ``MissingExtra`` where the libraries of the pipeline are not installed."""
    from importlib.util import find_spec

    from quotascope.pipeline.errors import MissingExtra

    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"this needs {', '.join(missing)}: pip install 'quotascope[pipeline]'"
        )


def release_of(text: str | None) -> KafkaRelease | None:
    """The release of that version, None without one. Raises ``typer.BadParameter``."""
    from quotascope.metrics import KafkaRelease, MalformedName

    if text is None:
        return None
    try:
        return KafkaRelease.parse(text)
    except MalformedName:
        raise typer.BadParameter(
            f"{text[:60]!r} is not a version of Kafka such as 4.4",
            param_hint="--kafka-version",
        ) from None


def zone_of(name: str) -> tzinfo:
    """The time zone of that name. Raises ``typer.BadParameter``."""
    from datetime import UTC
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise typer.BadParameter(
            f"{name[:60]!r} is no time zone; try Europe/Berlin"
        ) from None
