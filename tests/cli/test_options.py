"""Options that belong together, as one parameter of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from quotascope.cli.options import grouped
from quotascope.cli.settings import SourceOptions

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
    app = typer.Typer()
    app.command()(_drive)
    return CliRunner().invoke(app, arguments).output.strip()


def test_a_group_is_filled_with_what_was_given() -> None:
    """Each field of a group, and of a group in it, is an option of its own, with its default."""
    assert _said("home") == "home False None 7 False"
    assert _said("home", "--speed", "9", "--name", "x", "--last") == ("home False x 9 True")


def test_options_stand_where_the_group_stands() -> None:
    """The help lists a group's options in its place, and the command keeps its words."""
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

    app = typer.Typer()
    app.command()(command)
    given = ["--source", "http://b:1/jolokia", "--bootstrap-servers", "b:9092"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    [config] = seen
    assert config.kafka is not None
    assert list(config.kafka.bootstrap_servers) == ["b:9092"]
    assert [str(source.url) for source in config.sources] == ["http://b:1/jolokia"]
    assert config.log.level == "error"
