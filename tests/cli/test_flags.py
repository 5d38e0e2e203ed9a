"""A flag means the same in all commands, and one thing has one flag; options that belong together are one parameter of a command."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from quotascope.cli.main import app
from quotascope.cli.options import grouped
from quotascope.cli.settings import SourceOptions

Meaning = tuple[object, ...]


def commands_of(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command and those below it, each with its name."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, f"{path} {name}")


def options_of(command: Any) -> list[Any]:
    """Its options, not those of commands below it."""
    return [each for each in command.params if each.param_type_name == "option"]


APP = typer.main.get_command(app)
COMMANDS = [(path, each) for path, each in commands_of(APP, "quotascope") if not hasattr(each, "commands")]


def meanings(root: Any) -> dict[str, dict[Meaning, list[str]]]:
    """Each flag, with the commands that have it by what they say of it."""
    found: dict[str, dict[Meaning, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, command in commands_of(root, "quotascope"):
        for option in options_of(command):
            shown = option.help, option.metavar, option.is_flag, option.multiple, option.envvar
            for flag in (*option.opts, *option.secondary_opts):
                found[flag][shown].append(path)
    return found


def test_a_flag_has_one_meaning() -> None:
    """Help, value and environment variable are the same wherever it is."""
    found = meanings(APP)
    assert {"--json", "--exporter", "--into"} <= found.keys()
    assert {flag: each for flag, each in found.items() if len(each) > 1} == {}


def test_a_meaning_has_one_flag() -> None:
    """No two flags have the same help, but a short form and its long one."""
    by_help: dict[object, set[str]] = defaultdict(set)
    for flag, each in meanings(APP).items():
        by_help.update({text[0]: by_help[text[0]] | {flag} for text in each})
    twice = [flags for flags in by_help.values() if len(flags) > 1]
    assert twice == [{"--config", "-c"}]


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_examples_use_flags_of_their_command(path: str, command: Any) -> None:
    """Each command has examples; a renamed flag would leave behind ones that fail."""
    assert "Examples:" in command.epilog
    assert re.search(rf"\b{path.rsplit(maxsplit=1)[-1]}\b", command.epilog)
    flags = {flag for option in options_of(command) for flag in option.opts}
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


Speed = Annotated[int, typer.Option("--speed", help="How fast.")]
Name = Annotated[str | None, typer.Option(metavar="NAME")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    speed: Speed = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Car:
    name: Name = None
    engine: _Engine


@grouped
def _drive(where: str, *, first: bool = False, car: _Car, last: bool = False) -> None:
    """Drive there."""
    typer.echo(f"{where} {first} {car.name} {car.engine.speed} {last}")


def _said(*arguments: str) -> str:
    driving = typer.Typer()
    driving.command()(_drive)
    return CliRunner().invoke(driving, arguments).output.strip()


def test_a_group_is_filled_with_what_was_given() -> None:
    """Each field of a group, and of a group in it, is an option of its own, with its default; the help lists them in the group's place."""
    assert _said("home") == "home False None 7 False"
    assert _said("home", "--speed", "9", "--name", "x", "--last") == "home False x 9 True"
    text = _said("--help")
    places = [text.index(f"--{name} ") for name in ("first", "name", "speed", "last")]
    assert places == sorted(places)
    assert "Drive there." in text
    assert "--car" not in text
    assert "--engine" not in text


def test_a_group_says_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of a group reach the configuration, and what was not given leaves the file's word."""
    monkeypatch.delenv("QUOTASCOPE_CONFIG", raising=False)
    seen = []

    @grouped
    def command(read: SourceOptions) -> None:
        seen.append(read.configuration(log_level="error"))

    asking = typer.Typer()
    asking.command()(command)
    given = ["--source", "http://b:1/jolokia", "--bootstrap-servers", "b:9092"]
    result = CliRunner().invoke(asking, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    [config] = seen
    assert config.kafka is not None
    assert list(config.kafka.bootstrap_servers) == ["b:9092"]
    assert [str(source.url) for source in config.sources] == ["http://b:1/jolokia"]
    assert config.log.level == "error"
