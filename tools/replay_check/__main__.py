"""
The command `python -m tools.replay_check LOG QUOTAS`.

It exits with 0 if every total holds, 1 if one does not, and 2 if nothing could be compared.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotascope.metrics.engine.quota_factory import QuotaConfig
from quotascope.metrics.engine.window_config import ManagerConfig, metric_config
from quotascope.metrics.errors import QuotascopeError
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.release import KafkaRelease

from . import Check, Total, check, read_log, read_rules
from .replay import CLOSE_MS

_WIDTH: Final = 130
"""Width of the output where there is no terminal, in columns."""
_LONGEST: Final = 60
_NUMBERS: Final = {
    "requests": 8,
    "throttled": 9,
    f"within {CLOSE_MS} ms": 11,
    "reported s": 10,
    "predicted s": 11,
    "error": 8,
}
"""Columns of numbers with their widths. Columns of names get the other space."""


def _release(version: str | None) -> KafkaRelease | None:
    """Return the release that an option names. Raises `typer.BadParameter`."""
    try:
        release = None if version is None else KafkaRelease.parse(version)
    except MalformedName as error:
        raise typer.BadParameter(str(error)) from error
    if release is not None and not release.is_exact:
        raise typer.BadParameter(
            f"Kafka {release} is not one that quotas are followed for: {KafkaRelease.exact_words()}"
        )
    return release


def _file(path: str) -> str:
    if not path:  # make passes an empty text for a variable that is not set
        raise typer.BadParameter("no file is given; say make replay-check LOG=FILE QUOTAS=FILE")
    return path


def compare(
    log: Annotated[str, typer.Argument(callback=_file, help="A request log, gzipped or not.")],
    quotas: Annotated[str, typer.Argument(callback=_file, help="The quotas in force, as `quotascope quotas export` writes them.")],
    *,
    as_logged: Annotated[bool, typer.Option("--as-logged", help="Infer nothing of what the log leaves out.")] = False,
    kafka_version: Annotated[str | None, typer.Option(callback=_release, metavar="VERSION", help="The broker's release, such as 4.3; else what the log reports, else the newest.")] = None,
    samples: Annotated[int, typer.Option(help="The broker's quota.window.num and controller.quota.window.num.")] = 11,
    window_seconds: Annotated[int, typer.Option(help="Its quota.window.size.seconds and controller.quota.window.size.seconds.")] = 1
) -> None:  # fmt: skip
    """
    Replay a request log under the quotas that were in force.

    The throttles are compared with those that the broker reported.
    """
    try:
        windows = ManagerConfig(samples=samples, window_seconds=window_seconds)
        metric_config(windows, None)
        rules = replace(read_rules(Path(quotas)), config=QuotaConfig(client=windows, controller=windows))
        release: object = kafka_version  # which the callback has made a release
        result = check(
            read_log(Path(log)),
            rules,
            infer=not as_logged,
            release=release if isinstance(release, KafkaRelease) else None,
        )
    except QuotascopeError as error:
        message = f"replay-check: {error}"
        Console(stderr=True).print(message, markup=False, soft_wrap=True)
        raise typer.Exit(2) from error
    console = Console()
    show(result, console if console.is_terminal else Console(width=_WIDTH))
    raise typer.Exit(0 if result.holds else 1)


def show(result: Check, console: Console) -> None:
    """Print reported and predicted seconds by client and quota, and the inferred times."""
    table = Table(title="Throttled seconds: what the broker reported, what the replay predicts")
    for name in ("user", "client-id", "quota"):
        table.add_column(name, overflow="fold")
    for name, width in _NUMBERS.items():
        table.add_column(name, justify="right", min_width=width)
    for total in result.totals:
        table.add_row(*_cells(total))
    console.print(table)
    console.print(Text(result.kafka.note))
    inferred = ", ".join(f"{_name(name)} {ms:.0f} ms" for name, ms in sorted(result.unlogged_ms.items()))
    if inferred:
        console.print(Text(
            "thread time that the log leaves out (network threads, authentication), inferred from earlier answers: "
            f"{inferred}; {result.share:.2f} ms for each ms of sendTimeMs"
        ))  # fmt: skip
    unknown = sum(total.unknown for total in result.totals if total.kind is QuotaType.FETCH)
    if unknown:
        console.print(f"{unknown} throttled fetches are left out: nothing in the log shows what they would have read")
    buckets = sum(total.unknown for total in result.totals if total.kind is QuotaType.CONTROLLER_MUTATION)
    if buckets:
        console.print(
            f"{buckets} throttled mutations are left out: the first of a bucket shows what it held when the log begins"
        )
    if result.unreadable:
        console.print(f"{result.unreadable} lines are no requests and were left out")


def _cells(total: Total) -> list[Text]:
    close = total.close / total.requests if total.requests else 0.0
    plain = (
        _name(total.user),
        _name(total.client_id),
        total.kind.label,
        str(total.requests),
        str(total.throttled),
        f"{close:.1%}",
        f"{total.reported_s:.3f}",
        f"{total.predicted_s:.3f}",
    )
    style = "green" if total.holds else "bold red"
    return [*map(Text, plain), Text(f"{total.error:+.2%}", style=style)]


def _name(text: str) -> str:
    """Return an untrusted name on one line, and of a limited length."""
    printable = text if text.isprintable() else repr(text)
    return printable if len(printable) <= _LONGEST else printable[:_LONGEST] + "…"


app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command()(compare)

if __name__ == "__main__":
    app(prog_name="replay-check")
