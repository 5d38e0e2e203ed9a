"""Commands and groups of commands whose help and errors are for people, with every version of typer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from quotascope.metrics.errors import QuotascopeError

from .help import Rows, help_text

_FROM_TO: Final = re.compile(r"\b([\d.]+)<=x<=([\d.]+)")
_AT_LEAST: Final = re.compile(r"\bx>=([\d.]+)")


def show_help(command: Any, ctx: typer.Context, commands: Mapping[str, Rows], end: str = "") -> None:  # noqa: ANN401 typer's
    """
    Print the help of a command: no word of it is cut, as rich cuts those that are longer than their column.

    Args:
        command: the command, or group of commands.
        ctx: its context.
        commands: names of its commands with their texts, by the title of the panel.
        end: paragraphs at the end, in place of those of the command.

    """
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
        if record := parameter.get_help_record(ctx):
            left, right = record
            rows = panels.setdefault(getattr(parameter, "rich_help_panel", None) or kind, [])
            rows.append((left, _AT_LEAST.sub(r"at least \1", _FROM_TO.sub(r"\1 to \2", right))))
    typer.echo(
        help_text(
            f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}",
            command.help or "",
            {title: rows for title, rows in {**panels, **commands}.items() if rows},
            encoding=sys.stdout.encoding or "utf-8",  # a text in memory has none
            end=end or command.epilog or "",
        ),
        nl=False,
    )


def _for_people(parameters: list[Any], ctx: typer.Context) -> list[Any]:
    """
    Return parameters without the types of flags, and without those of arguments whose name says enough.

    When a shell completes a word, values stay texts: converting them would import pydantic, which takes half of the
    time.
    """
    for parameter in parameters:
        if ctx.resilient_parsing:
            parameter.process_value = _as_written
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
        if parameter.param_type_name == "argument":
            parameter.get_usage_pieces = partial(_usage_pieces, parameter)
            if parameter.metavar is not None:
                parameter.display_type_rich = _no_type
    return parameters


def _usage_pieces(argument: Any, _ctx: typer.Context) -> list[str]:  # noqa: ANN401 typer's
    """Return an argument as the line of usage has it: `FOLDER`, `[FOLDER]`, `LOGS…`; braces look like a choice."""
    name = argument.metavar or argument.name.upper()
    if argument.nargs != 1 and not name.endswith("…"):
        name += "…"
    return [name if argument.required or name.startswith("[") else f"[{name}]"]


def _no_type(ctx: object) -> None:
    """Return no type for an argument, since its name is enough."""


def _as_written(_ctx: object, value: object) -> object:
    """Return a value of the command line without converting it."""
    return value


@contextmanager
def _with_context(ctx: typer.Context) -> Iterator[None]:
    """Give an exception of typer's the context that it lacks, as that of an option without a value does."""
    try:
        yield
    except Exception as error:
        if getattr(error, "ctx", ctx) is None:
            error.ctx = ctx  # type: ignore[attr-defined] # typer's exceptions have it
        raise


class Command(TyperCommand):
    """A command."""

    # some versions of typer have their context and exceptions in private modules
    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """Return the parameters as the help shows them."""
        return _for_people(super().get_params(ctx), ctx)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """Print the help."""
        del formatter
        show_help(self, ctx, {})

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Read the words of the command line. Raises typer's exceptions, which name the command."""
        with _with_context(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command. Raises ``typer.BadParameter`` for errors of ours that are about the command line."""
        try:
            return super().invoke(ctx)
        except QuotascopeError as error:
            if not error.is_of_usage:
                raise
            problem = typer.BadParameter(str(error))
            problem.ctx = ctx
            raise problem from error


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """Return the parameters as the help shows them."""
        return _for_people(super().get_params(ctx), ctx)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """Print the help, with the first sentence of each command's."""
        del formatter
        texts = ((name, (command.help or "").partition("\n\n")[0]) for name, command in self.commands.items())
        show_help(self, ctx, {"Commands": texts})

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Read the words of the command line. Raises typer's exceptions, which name the group."""
        with _with_context(ctx):
            return super().parse_args(ctx, args)


class App(typer.Typer):
    """A group of commands as functions declare them."""

    def __init__(
        self,
        name: str,
        text: str,
        group: type[Group] = Group,
        **settings: Any,  # noqa: ANN401 typer's
    ) -> None:
        super().__init__(
            name=name,
            help=text,
            cls=group,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode="rich",
            **settings,
        )

    # typer's own signature declares each of the settings
    def command(  # type: ignore[override]
        self,
        name: str | None = None,
        cls: type[TyperCommand] = Command,
        **settings: Any,  # noqa: ANN401 typer's
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Return a decorator that adds a function as a command."""
        return super().command(name, cls=cls, **settings)
