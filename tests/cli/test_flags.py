"""A flag means the same in all commands, and one thing has one flag."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from quotascope.cli.main import app

Meaning = tuple[object, ...]


def _options(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All options of a command and of those below it, each with its command."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield path, parameter
    for name, inner in getattr(command, "commands", {}).items():
        yield from _options(inner, f"{path} {name}")


def meanings(root: Any) -> dict[str, dict[Meaning, list[str]]]:
    """Each flag, with the commands that have it by what they say of it."""
    found: dict[str, dict[Meaning, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, option in _options(root, "quotascope"):
        shown = option.help, option.metavar, option.is_flag, option.multiple
        for flag in (*option.opts, *option.secondary_opts):
            found[flag][*shown, option.envvar].append(path)
    return found


def test_a_flag_has_one_meaning() -> None:
    """Help, value and environment variable are the same wherever it is."""
    found = meanings(typer.main.get_command(app))
    assert {"--json", "--exporter", "--into"} <= found.keys()
    assert {flag: each for flag, each in found.items() if len(each) > 1} == {}


def test_a_meaning_has_one_flag() -> None:
    """No two flags have the same help, but a short form and its long one."""
    by_help: dict[object, set[str]] = defaultdict(set)
    for flag, each in meanings(typer.main.get_command(app)).items():
        by_help.update({text[0]: by_help[text[0]] | {flag} for text in each})
    twice = [flags for flags in by_help.values() if len(flags) > 1]
    assert twice == [{"--config", "-c"}]


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, each in inner.items():
        yield from _commands(each, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), [*_commands(typer.main.get_command(app), "quotascope")])
def test_examples_use_flags_of_their_command(path: str, command: Any) -> None:
    """Each command has examples; a renamed flag would leave behind ones that fail."""
    assert "Examples:" in command.epilog
    assert re.search(rf"\b{path.rsplit(maxsplit=1)[-1]}\b", command.epilog)
    flags = {flag for _, option in _options(command, path) for flag in option.opts}
    for line in (command.epilog or "").splitlines():
        ours = line.partition(f"{path} ")[2] or line.partition(path.removeprefix("quotascope") + " ")[2]
        used = re.findall(r"(?<=\s)--?[a-z][a-z.-]*", f" {ours.partition('|')[0]}")
        assert {*used} <= flags, line


def test_two_meanings_are_found() -> None:
    """The check can fail."""
    other = typer.Typer()

    @other.command()
    def one(top: int = typer.Option(help="How many.")) -> None:
        """Take one meaning."""

    @other.command()
    def two(top: int = typer.Option(help="Which.")) -> None:
        """Take another meaning."""

    found = meanings(typer.main.get_command(other))
    assert [*found["--top"].values()] == [["quotascope one"], ["quotascope two"]]
