"""The command line as a whole: errors and exit codes, what flags mean, and the libraries of each extra."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from tests.cli.commands import APP, COMMANDS, commands_of
from tests.cli.conftest import Run
from tests.commands import COMMAND, exit_code, logging_kept
from tests.installed import Installed
from tests.spark_listener.report.throttled import log
from typer.testing import CliRunner

from quotascope.cli import main as main_module
from quotascope.cli.commands import PANELS
from quotascope.cli.help import help_text
from quotascope.cli.options import grouped
from quotascope.cli.settings import SourceOptions
from quotascope.clients.errors import LibraryMissing
from quotascope.exporter.errors import ConfigError

ROOT = Path(__file__).parents[2]


TITLES = re.compile(r"^╭─ (.*?) ─+╮$", re.MULTILINE)
"""Titles of the panels of a help."""


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*, prog_name: str, standalone_mode: bool) -> None:
        assert (prog_name, standalone_mode) == ("quotascope", False)
        raise error

    monkeypatch.setattr(main_module, "app", app)


@pytest.mark.parametrize(("words", "command"), [((), "explain"), (("quotas",), "list")])
def test_nothing_shows_the_help(run: Run, words: tuple[str, ...], command: str) -> None:
    """Without a command, the help is shown once, that of a group of commands, too."""
    code, out, err = run(*words)
    assert code == 2
    assert command in out + err
    assert (out + err).count("Usage:") == 1


def test_the_help_has_every_command(run: Run) -> None:
    """The table of commands, which spares their import, has the first sentence of each command's help."""
    commands: dict[str, Any] = APP.commands  # type: ignore[attr-defined]
    summaries = {name: text for panel in PANELS.values() for name, text in panel.items()}
    assert summaries == {name: " ".join(made.help.partition("\n\n")[0].split()) for name, made in commands.items()}
    _, out, _ = run("--help")
    assert set(summaries) <= set(re.findall(r"(?m)^│ ([a-z-]+) ", out))


def test_the_help_fits_its_output() -> None:
    """Lines end at the terminal's width, have colors unless these are not wanted, and plain lines where needed."""
    texts = {"ask": "Ask for this and that.", "go": "", "--url [A_LONG_KIND=]URL": "From http://quotascope-of-it:9749."}
    panels = {"Commands of a long name, which is not cut": texts.items()}
    environment = {"COLUMNS": "40", "NO_COLOR": "1", "PATH": ""}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        end = "Example:\n\nquotascope explain --user 'a b' --client-id etl # both"
        text, plain = (
            help_text("tool [OPTIONS]", "Do it.", panels, encoding=encoding, end=end) for encoding in ("utf-8", "ascii")
        )
        patch.delenv("NO_COLOR")
        colored = help_text("tool [OPTIONS]", "Do it.", panels, encoding="utf-8", end=end)
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == text
    assert (
        text
        == """
 Usage: tool [OPTIONS]

 Do it.

╭──────────────────────────────────────╮
│ Commands of a long name, which is    │
│ not cut                              │
│ ask  Ask for this and that.          │
│ go                                   │
│ --url [A_LONG_KIND=]URL              │
│      From                            │
│      http://quotascope-of-it:9749.   │
╰──────────────────────────────────────╯

 Example:

 quotascope explain --user 'a b' \\
     --client-id etl # both
"""
    )
    assert plain.isascii()
    assert {len(line) for line in text.splitlines()[5:-5]} == {40}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("ingest", "LOGS…"),
        ("whatif", "FOLDER"),
        ("usage", "[FOLDER]"),
        ("quotas set", "[KEY=VALUE]…"),
        ("ingest-prometheus", "[DUMPS]…"),
    ],
)
def test_the_line_of_usage_names_arguments_as_their_panel(run: Run, command: str, arguments: str) -> None:
    """The line of usage has no braces, one ellipsis for several values, and brackets around what may be left out."""
    _, out, _ = run(*command.split(), "--help")
    assert f" Usage: quotascope {command} [OPTIONS] {arguments}\n" in out


def test_no_line_of_usage_has_braces_or_two_ellipses(run: Run) -> None:
    """The line of usage of each command names its arguments without braces, and with one kind of ellipsis."""
    for path, _ in COMMANDS:
        usage = run(*path.split()[1:], "--help")[1].partition("Usage: ")[2].partition("\n\n")[0]
        assert not re.search(r"[{}]|…\S*\.\.\.|\[\[", usage), usage


@pytest.mark.parametrize("words", [(), ("quotas",), ("whatif",)], ids=["program", "group", "command"])
def test_the_help_needs_no_encoding(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that collects the output as text, which has no encoding, gets the help with its boxes."""
    monkeypatch.setattr(sys, "argv", ["quotascope", *words, "--help"])
    with redirect_stdout(io.StringIO()) as out, logging_kept():
        assert exit_code() == 0
    assert "Usage: quotascope" in out.getvalue()
    assert "╭─" in out.getvalue()


@pytest.mark.parametrize("width", [80, 100])
def test_no_word_of_a_help_is_cut(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """In a narrow terminal the help of each command has the words and titles of panels of a wide one, whole."""
    paths = sorted({" ".join(path.split()[:words]) for path, _ in COMMANDS for words in range(1, 4)})
    assert len(paths) > len(COMMANDS)

    def shown(path: str, columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        return run(*path.split()[1:], "--help")[1]

    for path in paths:
        wide, narrow = shown(path, 2_000), shown(path, width)
        assert max(map(len, narrow.splitlines())) <= width
        assert TITLES.findall(narrow) == TITLES.findall(wide)
        # a command goes on behind a backslash
        words, whole = ([word for word in text.split() if word.strip("╭╮╰╯─│\\")] for text in (narrow, wide))
        assert words == whole, path


@pytest.mark.parametrize(
    "arguments",
    ["servee", "serve --prot 1", "serve --port x", "explain --exporter x", "usage x --begin x", "quotas set"],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: str) -> None:
    """A typing mistake is distinguished from something that failed, and is a line as any other error."""
    code, out, err = run(*arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("quotascope: ")
    assert err.endswith("--help)\n")


def test_example_is_the_reference_configuration(run: Run, tmp_path: Path) -> None:
    """The printed reference is that of the documentation, and works unchanged."""
    code, out, _ = run("config", "example")
    assert (code, out) == (0, (ROOT / "docs" / "reference" / "configuration.yaml").read_text(encoding="utf-8"))
    file = tmp_path / "q.yaml"
    file.write_text(out)
    assert run("config", "check", str(file)) == (0, f"{file}: fine, 1 source\n", "")


@pytest.mark.parametrize("error", [ConfigError("q.yaml", ["line 1: no"]), LibraryMissing("kafka-python")])
def test_errors_are_one_message(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """An expected error ends with its message and exit code 1."""
    fail_with(error, monkeypatch)
    assert run() == (1, "", f"quotascope: {error}\n")


def test_defect_is_one_message_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is a message without a traceback, unless a user asks for the traceback."""
    monkeypatch.delenv("QUOTASCOPE_TRACEBACK", raising=False)
    fail_with(ZeroDivisionError("oops\x1b[2J"), monkeypatch)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert err.startswith("quotascope: unexpected ZeroDivisionError: oops\\x1b[2J\n")
    monkeypatch.setenv("QUOTASCOPE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run()


def test_an_output_that_takes_nothing() -> None:
    """A full device is reported, and is no defect; ``quotascope config example | true`` ends quietly."""
    command = (COMMAND, "config", "example")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith("quotascope: the output cannot be written: No space left on device")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_standard_streams_that_are_closed() -> None:
    """Closed standard streams are as /dev/null: input is empty, and output goes into no file that is opened later."""
    script = f"{COMMAND} config check - 2>&1 >&- <&-; exec {COMMAND} config check nothing 2>&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("quotascope: standard input: no source: give --source")
    assert (done.stdout.count("\n"), done.stderr, done.returncode) == (1, "", 1)


def test_help_is_quick() -> None:
    """A help text loads neither HTTP, nor Kafka, nor the engine, nor the configuration's models."""
    code = (
        "import sys; sys.argv = ['quotascope', '--help']\n"
        "from quotascope.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'aiohttp', 'kafka', 'pydantic', 'prometheus_client', 'structlog', "
        "*(f'quotascope.metrics.{room}' for room in ('catalog', 'engine', 'kafka'))} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["serve", "status", "explain"])
def test_every_command_reaches_kafka_in_the_same_way(run: Run, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the Admin API has all options of the connection."""
    monkeypatch.setenv("COLUMNS", "200")
    _, help_text, _ = run(command, "--help")
    flags = "bootstrap-servers security-protocol sasl-mechanism sasl-username sasl-password-file ca-file"
    assert [flag for flag in flags.split() if f"--{flag}" not in help_text] == []


@pytest.mark.parametrize(
    ("text", "code", "reported"),
    [
        (b"sources: [{name: a, url: 'http://a:1/jolokia'}]", 0, "standard input: fine, 1 source"),
        (b"prot: 1", 1, "quotascope: standard input"),
        (b"\xff", 1, "standard input: is not UTF-8 text (byte 0)"),
    ],
)
def test_configuration_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: bytes, code: int, reported: str
) -> None:
    """A pipe can be checked as well as a file, and messages say where the text came from."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    ended, out, err = run("config", "check", "-")
    assert ended == code
    assert reported in out + err


def test_files_of_targets_that_hang(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of a configuration ends although a file of targets cannot be read to its end, and reports it."""
    monkeypatch.setattr("quotascope.cli.config._LONGEST_SECONDS", 0.1)
    answers = threading.Event()

    def late(_file: Path, _most_bytes: int) -> bytes:
        answers.wait(20)
        return b"[]"

    monkeypatch.setattr("quotascope.exporter.discovery.files.content_of", late)
    (tmp_path / "targets.json").write_text("[]")
    file = tmp_path / "quotascope.yaml"
    file.write_text(f"discovery: {{file_sd: {{files: ['{tmp_path}/targets.json']}}}}\n")
    code, _, err = run("config", "check", str(file))
    assert code == 0
    assert "a file is not read to its end after" in err
    answers.set()


@pytest.mark.timeout(60)
def test_pipes_in_place_of_files(run: Run, tmp_path: Path) -> None:
    """A check ends at once, even if the configuration, its web config or a file of targets is an idle pipe."""
    pipe, file = tmp_path / "pipe", tmp_path / "quotascope.yaml"
    os.mkfifo(pipe)
    for text in (f"discovery: {{file_sd: {{files: ['{pipe}']}}}}\n", f"server: {{web_config_file: {pipe}}}\n"):
        file.write_text(text)
        _, out, err = run("config", "check", str(file))
        assert re.search("not a regular file|a file that is there", out + err)
    code, out, err = run("config", "check", str(pipe))
    assert code == 1
    assert "not a regular file" in out + err


Meaning = tuple[object, ...]


def options_of(command: Any) -> list[Any]:
    """Return the options of a command, without those of its subcommands."""
    return [parameter for parameter in command.params if parameter.param_type_name == "option"]


def meanings(root: Any) -> dict[str, dict[Meaning, list[str]]]:
    """Return the commands that have a flag, by flag and by what their help says of it."""
    meanings_of: dict[str, dict[Meaning, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, command in commands_of(root, "quotascope"):
        for option in options_of(command):
            meaning = option.help, option.metavar, option.is_flag, option.multiple, option.envvar
            for flag in (*option.opts, *option.secondary_opts):
                meanings_of[flag][meaning].append(path)
    return meanings_of


def test_a_flag_has_one_meaning() -> None:
    """A flag has the same help, value and environment variable in each command."""
    meanings_by_flag = meanings(APP)
    assert {"--json", "--exporter", "--into"} <= meanings_by_flag.keys()
    assert {flag: by_meaning for flag, by_meaning in meanings_by_flag.items() if len(by_meaning) > 1} == {}


def test_a_meaning_has_one_flag() -> None:
    """No two flags have the same help, except for a short and a long form."""
    by_help: dict[object, set[str]] = defaultdict(set)
    for flag, by_meaning in meanings(APP).items():
        by_help.update({text[0]: by_help[text[0]] | {flag} for text in by_meaning})
    twice = [flags for flags in by_help.values() if len(flags) > 1]
    assert twice == [{"--version", "-V"}, {"--config", "-c"}]


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_examples_use_flags_of_their_command(path: str, command: Any) -> None:
    """Each command has examples, and they use only flags that the command has."""
    assert "Examples:" in command.epilog
    assert re.search(rf"\b{path.rsplit(maxsplit=1)[-1]}\b", command.epilog)
    flags = {flag for option in options_of(command) for flag in option.opts}
    for line in (command.epilog or "").splitlines():
        ours = line.partition(f"{path} ")[2] or line.partition(path.removeprefix("quotascope") + " ")[2]
        used = re.findall(r"(?<=\s)--?[a-z][a-z.-]*", f" {ours.partition('|')[0]}")
        assert {*used} <= flags, line


def test_help_has_no_types_of_python(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag takes no value, and the name of an argument says what it is."""
    monkeypatch.setenv("COLUMNS", "80")
    texts = [run(*path.split()[1:], "--help")[1] for path, _ in COMMANDS]
    assert [text for text in texts if "<bool>" in text or "<list" in text] == []
    assert run("-V") == run("--version")


def test_two_meanings_are_found() -> None:
    """A flag with two meanings is found, so that the check can fail."""
    second_app = typer.Typer()

    @second_app.command()
    def one(top: int = typer.Option(help="How many.")) -> None:
        """Take a single meaning."""

    @second_app.command()
    def two(top: int = typer.Option(help="Which.")) -> None:
        """Take another meaning."""

    meanings_by_flag = meanings(typer.main.get_command(second_app))
    assert [*meanings_by_flag["--top"].values()] == [["quotascope one"], ["quotascope two"]]


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
    """Each field of a group, and of a group in it, is an option with its default, listed in the group's place."""
    assert _said("home") == "home False None 7 False"
    assert _said("home", "--speed", "9", "--name", "x", "--last") == "home False x 9 True"
    text = _said("--help")
    places = [text.index(f"--{name} ") for name in ("first", "name", "speed", "last")]
    assert places == sorted(places)
    assert "Drive there." in text
    assert "--car" not in text
    assert "--engine" not in text


def test_a_group_says_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of a group reach the configuration, and an absent option leaves the value of the file."""
    monkeypatch.delenv("QUOTASCOPE_CONFIG", raising=False)
    seen = []

    @grouped
    def command(read: SourceOptions) -> None:
        seen.append(read.configuration(log_level="error"))

    asking = typer.Typer()
    asking.command()(command)
    options = ["--source", "http://b:1/jolokia", "--bootstrap-servers", "b:9092"]
    result = CliRunner().invoke(asking, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    [config] = seen
    assert config.kafka is not None
    assert list(config.kafka.bootstrap_servers) == ["b:9092"]
    assert [str(source.url) for source in config.agents] == ["http://b:1/jolokia"]
    assert config.log.level == "error"


RUN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
ends = []
for sys.argv[1:] in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        try:
            from quotascope.cli.main import main
            main()
        except SystemExit as end:
            ends.append([end.code or 0, err.getvalue()])
print(json.dumps(ends))
"""
OF_ROOMS = {
    "mcp": "mcp",
    "alerts mixin": "dashboards",
    "dashboards write": "dashboards",
    "dashboards push": "dashboards",
}
"""Extras of commands that do not ask for that of the pipeline."""
ENDS = {"--json": [], "--port": ["0"], "--duration": ["0"], "--wait-seconds": ["1"]}
"""Options with which a command does its work once and ends, beside others."""


def example_of(path: str, command: Any) -> list[str]:
    """Return words of a command's first example that needs neither a cluster nor a configuration, with other places."""
    examples = [line for line in EXAMPLES.findall(command.epilog or "") if line.startswith(f"{path} ")]
    alone = [line for line in examples if not re.search("--(config|prometheus|source) ", line)]
    words = shlex.split(re.split("[|>]", (alone or examples or [path])[0])[0])[1:]
    if "--bootstrap-servers" in words:
        place = words.index("--bootstrap-servers")
        del words[place : place + 2]
    if path == "quotascope mcp":  # which would serve this process
        return ["mcp", "--exporter", "no address"]
    words = [re.sub(r"://[^/]+", "://127.0.0.1:9", Path(word).name if word.startswith("/") else word) for word in words]
    known = {option for parameter in command.params for option in parameter.opts}
    return words + [word for option, value in ENDS.items() if option in known for word in (option, *value)]


def extra_of(path: str, command: Any) -> str:
    """Return the extra that a command needs."""
    asks = "check_extra()" in inspect.getsource(inspect.unwrap(command.callback))
    return "pipeline" if asks else OF_ROOMS.get(path.removeprefix("quotascope "), "")


EXAMPLES = re.compile(r"^ *(quotascope .+)$", re.MULTILINE)
NEEDED = {shlex.join(example_of(path, command)): extra_of(path, command) for path, command in COMMANDS}


def test_every_command_is_tried_as_its_help_shows() -> None:
    """A command whose help shows no example is not tried."""
    names = [path.removeprefix("quotascope ") for path, _ in COMMANDS]
    assert len(NEEDED) == len(names)
    assert all(f"{line} ".startswith(f"{name} ") for line, name in zip(NEEDED, names, strict=True))
    for (path, command), line in zip(COMMANDS, NEEDED, strict=True):
        arguments = [parameter for parameter in command.params if parameter.required]
        assert not arguments or len(line.split()) >= len(path.split()), path


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", "dashboards", "mcp", "pipeline"])
def test_a_command_names_the_extra_that_it_lacks(extra: str, tmp_path: Path) -> None:
    """A command without its extra names the extra in one line; most commands need none."""
    work = tmp_path / "work"
    work.mkdir()
    log(work / "application_1700000000000_0042")
    for name in ("quotas.yaml", "candidates.yaml"):
        (work / name).write_text("quotas: []\n")
    (work / "token").write_text("secret")
    (work / "teams.yaml").write_text("teams: [{team: a, clients: [{user: b}]}]\n")
    lines = {line: needed for line, needed in NEEDED.items() if extra in {"", needed}}
    words = json.dumps([shlex.split(line) for line in lines])
    done = Installed(tmp_path, [f"quotascope[{extra}]"]).run(RUN, words, folder=work)
    assert done.returncode == 0, done.stderr
    ends = dict(zip(lines, json.loads(done.stdout), strict=True))
    lacking = {line: end for line, end in ends.items() if "pip install '.[" in end[1]}
    assert lacking.keys() == {line for line, needed in lines.items() if needed != extra}
    for line, (code, err) in lacking.items():
        assert err.endswith(f"in a clone of quotascope: pip install '.[{lines[line]}]'\n")
        assert (code, err.count("\n")) == (1, 1), err
    assert {line: err for line, (_, err) in ends.items() if "unexpected" in err} == {}
