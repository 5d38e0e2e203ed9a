"""Quotas as arguments: `producer_byte_rate=1048576`."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def parsed(arguments: Iterable[str]) -> dict[str, float]:
    """The values by key. Raises ``typer.BadParameter``."""
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
