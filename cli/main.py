"""The command `quotascope`: assembly of the rooms, with a file for each command."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from difflib import get_close_matches
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from io import TextIOWrapper
from typing import Annotated, Any, Final, NoReturn

import typer

from quotascope.metrics.errors import InvalidInput, QuotascopeError

from .app import App, Group, show_help
from .commands import PANELS, Commands


class CommandGroup(Group):
    """All commands; their errors about options have no words of the library that parses the values."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of typer
        super().__init__(**settings)
        self.commands = Commands()  # type: ignore[assignment] # typer adds none

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names without making the commands."""
        del ctx
        return list(self.commands)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """Print the help of all commands without making one of them."""
        del formatter
        show_help(self, ctx, {title: rows.items() for title, rows in PANELS.items()}, end=_documentation())

    # some versions of typer have their exceptions in private modules
    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command. Raises typer's exceptions, with messages for people."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = getattr(error, "message", None)
            if isinstance(message, str):
                text = _in_plain_words(message, error.__cause__, _range(error))
                if text != message:  # the message of a group of exceptions, which is not ours, cannot be set
                    error.message = text  # type: ignore[attr-defined]
            raise


def _documentation() -> str:
    """Return the place of the documentation: the address that a release has, or the repository's folder."""
    from importlib.metadata import metadata

    addresses = dict(line.split(", ", 1) for line in metadata("quotascope").get_all("Project-URL") or ())
    return f"Documentation: {addresses.get('Documentation', 'docs/index.md in the repository of quotascope')}"


def _range(error: Exception) -> str:
    """Return the numbers that an option takes, empty unless both ends are there."""
    option = getattr(error, "param", None)
    low, high = getattr(option, "min", None), getattr(option, "max", None)
    return "" if low is None or high is None else f"a number from {low:.12g} to {high:.12g}"


def _in_plain_words(message: str, cause: BaseException | None, numbers: str) -> str:
    """Return pydantic's message about the value of an option in plain words, with the value and a likely word."""
    if not message.startswith(("Value error, ", "Input should be ")):
        return message
    text = message.removeprefix("Value error, ").rstrip(".").partition(", unable")[0]
    # of an option that takes only some words
    value, _, words = text.partition(" is not one of ")
    if close := get_close_matches(value.strip("'"), re.findall("'([^']*)'", words), 1):
        return f"{text}; did you mean {close[0]!r}?"
    if numbers and text.startswith(("Input should be less", "Input should be greater")):
        text = f"expected {numbers}"
    # pydantic's error has a method `errors`; any other cause has no problem to quote
    problems: list[dict[str, object]] = getattr(cause, "errors", list)()
    for theirs, ours in _EXPECTED:
        text = text.replace(theirs, ours)
    has_value = "'" in text
    return text if has_value or not problems else f"{text}, not {problems[0]['input']!r}"


_EXPECTED = (
    ("Input should be a valid integer", "expected a whole number"),
    ("Input should be a valid", "expected a"),
    ("Input should be", "expected a number"),
    (" does not match the formats '%Y-%m-%d'", " is not a date such as 2026-09-01"),
)
"""Phrases of pydantic and typer, and plain words for them."""


app = App(
    "quotascope",
    "Quota observability for Apache Kafka: which clients are throttled, by which rule, and how close the others are to "
    "their limits.",
    CommandGroup,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(is_requested: bool) -> None:
    """Print the version, and end, if that is requested."""
    if is_requested:
        from importlib.metadata import version

        typer.echo(f"quotascope {version('quotascope')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Quota observability for Apache Kafka."""


_GC_THRESHOLD: Final = 250_000
"""New objects after which Python searches for cycles, as the exporter has it (`collect_garbage_rarely`)."""
_FAILED: Final = 1
"""Exit code of a command that could not do its work; 2 is that of wrong usage."""


def main() -> None:
    """Run the command line; errors become a message and an exit code."""
    # objects of imports stay: to search them for cycles takes a sixth of the time until a command works
    gc.set_threshold(_GC_THRESHOLD)
    # a parent process may have closed them: files would take their descriptors, and get what is printed
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    # names of clients may have characters that the terminal's encoding lacks
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    _mute_py4j()
    try:
        code = app(prog_name="quotascope", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - each becomes a message
        _fail_with(error)
    sys.exit(code if isinstance(code, int) else 0)


def _fail_with(error: Exception) -> NoReturn:
    """End with the message of an error; raise the error if it is a defect and ``QUOTASCOPE_TRACEBACK`` is set."""
    if hasattr(error, "format_message"):
        _fail_with_usage(error)
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("quotascope"):
        _fail(f"{error.name} is missing: install quotascope again, with what it needs")
    if isinstance(error, QuotascopeError):
        _fail(str(error))
    if isinstance(error, typer.Abort):
        _fail("ended")
    if "QUOTASCOPE_TRACEBACK" in os.environ:
        raise error
    if isinstance(error, OSError) and error.filename is None and error.errno in {EDQUOT, EFBIG, EIO, ENOSPC}:
        _fail(f"the output cannot be written: {error.strerror}")
    _fail(_unexpected_text(error))


def _fail_with_usage(error: Any) -> NoReturn:  # noqa: ANN401 typer's exceptions have a private home in some versions
    """End with the one form of all errors; without a command, with the help."""
    context = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":
        # with rich, typer printed the help when it made the error; without, the help is its message
        if error.message:
            typer.echo(error.message, err=True)
        sys.exit(error.exit_code)
    cause = error.__cause__
    if isinstance(cause, InvalidInput) and cause.is_of_usage:
        lines = str(cause).splitlines()  # a list of problems has a line for each
    else:
        lines = [" ".join(error.format_message().split())]
    first, *others = lines
    message = _QUOTED.sub(r"\1\2", first).rstrip(".").removeprefix("Invalid value: ")
    path = "quotascope" if context is None else context.command_path
    _fail("\n".join([f"{message[:1].lower()}{message[1:]} ({path} --help)", *others]), error.exit_code)


_QUOTED: Final = re.compile(r"^(Invalid value for |Missing (?:argument|option) )'([^']+)'")
"""Pattern of the beginning of typer's message about a parameter, which our messages have without quotes."""


def _mute_py4j() -> None:
    """Leave out logs of Py4J, whose tracebacks repeat an error that is reported, also of an ended JVM and of Ctrl-C."""
    if "QUOTASCOPE_TRACEBACK" not in os.environ:
        # it logs to the root itself, which then writes to standard error
        logging.getLogger().addFilter(_is_not_of_py4j)
        logging.getLogger("py4j").propagate = False


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is from other code than Py4J's."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _unexpected_text(error: Exception) -> str:
    """Return the message of an error that no code of ours expects."""
    from quotascope.exporter.untrusted import one_line
    from quotascope.pipeline.errors import is_of_spark

    if is_of_spark(error):
        return f"Spark gave up: {one_line(str(error))}; what it logged before says more"
    return (
        f"unexpected {type(error).__name__}: {one_line(str(error))}\n"
        "This is a defect of quotascope. QUOTASCOPE_TRACEBACK=1 shows where it is."
    )


def _fail(message: str, code: int = _FAILED) -> NoReturn:
    """End the process with a message on standard error."""
    sys.stderr.write(f"quotascope: {message}\n")
    sys.exit(code)
