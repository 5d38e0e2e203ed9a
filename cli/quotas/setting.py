"""`quotascope quotas set`: quotas of one entity, or of all in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..grouping import grouped
from ..running_exporter import RunningExporter
from ..settings import SourceOptions
from .entity import Whom, refuse_principal

if TYPE_CHECKING:
    from quotascope.quotas import QuotaSet

EXAMPLES = """
Examples:

quotascope quotas set producer_byte_rate=10485760 --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas set request_percentage=200 consumer_byte_rate=5e6 --default-user --bootstrap-servers broker-1:9092 --exporter http://quotascope:9749 --apply

quotascope quotas set connection_creation_rate=20 --default-ip --config /etc/quotascope.yaml --apply

quotascope quotas set --measure-only --bootstrap-servers broker-1:9092 --apply

quotascope quotas set --file quotas.yaml --config /etc/quotascope.yaml --apply

Exit code 0: shown, or with --apply done and read back. 1: not.
"""


@grouped
def set_(
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]…",
            help="producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage (of a thread), controller_mutation_rate (partitions/s); of an ip: connection_creation_rate (connections/s). All per broker.",
        ),
    ] = None,
    *,
    whom: Whom,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Set all quotas of this YAML file instead (- for standard input); others stay.",
        ),
    ] = None,
    measure_only: Annotated[
        bool,
        typer.Option(
            "--measure-only",
            help="Set limits that no client reaches, so that Kafka measures what clients use; for all users unless another entity is named, and of all keys unless some are named (KEY without =VALUE).",
        ),
    ] = False,
    apply: options.Apply = False,
    top: options.Top = 20,
    running: RunningExporter,
    read: SourceOptions,
) -> None:
    """Set quotas of a user, a client-id, a pair, an address or a default: what changes, and for whom."""
    from quotascope.quotas import altered, merged, read_quotas

    from .change import alter

    wanted: Callable[[QuotaSet], QuotaSet]
    if file is not None and (values or whom.named or measure_only):
        raise typer.BadParameter(
            "--file takes neither values nor an entity nor --measure-only"
        )
    if file is not None:
        wanted = partial(merged, others=read_quotas(file))
    elif measure_only:
        wanted = _measure_only(whom, values or [])
    else:
        entity, numbers = whom.entity(), _parsed(values or [])
        refuse_principal(entity)
        wanted = partial(altered, entity=entity, values=numbers)
    settings = read.configuration(log_level="error")
    alter(
        settings,
        running.target(),
        wanted,
        most=top,
        apply=apply,
        never_reached=measure_only,
    )


def _measure_only(whom: Whom, keys: list[str]) -> Callable[[QuotaSet], QuotaSet]:
    from quotascope.metrics import DEFAULT, QuotaEntity
    from quotascope.quotas import UNREACHED, described, measure_only, number_text

    entity = whom.entity() if whom.named else QuotaEntity(DEFAULT)
    refuse_principal(entity)
    if not isinstance(entity, QuotaEntity):
        raise typer.BadParameter("--measure-only is for users and client-ids")
    if any("=" in key for key in keys):
        raise typer.BadParameter("--measure-only chooses the values: name keys only")

    def wanted(old: QuotaSet) -> QuotaSet:
        for key, value in old.get(entity, {}).items():
            if key in (keys or UNREACHED):
                typer.echo(
                    f"quotascope: {key} of {described(entity)} stays {number_text(value)}: Kafka measures under it already",
                    err=True,
                )
        return measure_only(old, entity, keys or UNREACHED.keys())

    return wanted


def _parsed(arguments: Iterable[str]) -> dict[str, float]:
    """Values by key from ``KEY=VALUE``. Raises ``typer.BadParameter``."""
    from quotascope.quotas import number

    values: dict[str, float] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        value = number(text.strip())
        if not equals or value is None:
            raise typer.BadParameter(
                f"{argument[:60]!r} is not KEY=VALUE with a plain number"
            )
        if key.strip() in values:
            raise typer.BadParameter(f"{key.strip()[:60]!r} is there twice")
        values[key.strip()] = value
    if not values:
        raise typer.BadParameter("say what to set: KEY=VALUE, or --file FILE")
    return values
