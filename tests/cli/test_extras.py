"""Each command with the libraries of one extra and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.installed import Installed
from tests.spark_listener.report.throttled import log
from typer.main import get_command

from quotascope.cli.main import app

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
COMMANDS = {
    "serve": "exporter",
    "status --exporter http://127.0.0.1:9": "exporter",
    "top --exporter http://127.0.0.1:9 --json": "exporter",
    "doctor": "exporter",
    "explain --user a": "exporter",
    "request-topic log --bootstrap-servers 127.0.0.1:9 --wait-seconds 1": "exporter",
    "demo --duration 0": "exporter",
    "quotas list --exporter http://127.0.0.1:9": "exporter",
    "quotas set producer_byte_rate=1 --user a": "exporter",
    "quotas remove producer_byte_rate --user a": "exporter",
    "quotas diff quotas.yaml": "exporter",
    "quotas export": "exporter",
    "config check quotas.yaml": "exporter",
    "config example": "exporter",
    "alerts write alerts": "exporter",
    "alerts config": "exporter",
    "alerts mixin": "dashboards",
    "rules jmx-exporter": "exporter",
    "ingest app-1 --into usage": "pipeline",
    "whatif usage --candidates quotas.yaml": "pipeline",
    "recommend usage": "pipeline",
    "history status usage": "pipeline",
    "history compact usage": "pipeline",
    "history drop usage --before 2026-01-01": "pipeline",
    "history clean usage": "pipeline",
    "dashboards write dashboards --config quotas.yaml": "dashboards",
    "dashboards push --grafana-url http://127.0.0.1:9": "dashboards",
    "spark report app-1": "spark,cli",
    "spark py-files tasks.zip": "spark,cli",
    "spark jar plugin.jar": "spark,cli",
    "spark runner": "spark,cli",
    "spark submit-script": "spark,cli",
}


def leaves(command: Any, path: str = "") -> Iterator[str]:
    """The names of all commands under this one."""
    if not hasattr(command, "commands"):
        yield path
    else:
        for name, each in command.commands.items():
            yield from leaves(each, f"{path} {name}".strip())


def test_every_command_is_here() -> None:
    """A new command says which extra it needs."""
    lines = [f"{line} " for line in COMMANDS]
    names = list(leaves(get_command(app)))
    assert len(names) == len(lines)
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "extras", ["spark", "spark,cli", "pipeline", "dashboards", "exporter"]
)
def test_a_command_names_the_extra_that_it_lacks(extras: str, tmp_path: Path) -> None:
    """One line says what to install for it; with its extra, it lacks nothing."""
    work = tmp_path / "work"
    work.mkdir()
    log(work / "app-1")
    (work / "quotas.yaml").write_text("quotas: []\n")
    done = Installed(tmp_path, extras.split(",")).run(
        RUN, json.dumps([line.split() for line in COMMANDS]), folder=work
    )
    assert done.returncode == 0, done.stderr
    ends = dict(zip(COMMANDS, json.loads(done.stdout), strict=True))
    lacking = {line: end for line, end in ends.items() if "pip install" in end[1]}
    assert [line for line in lacking if COMMANDS[line] == extras] == []
    for line, (code, err) in lacking.items():
        assert err.endswith(f": pip install 'quotascope[{COMMANDS[line]}]'\n")
        assert (code, err.count("\n")) == (1, 1), err
    assert not any("unexpected" in err for _, err in ends.values())
    assert (len(lacking) == len(COMMANDS)) == (extras == "spark")


@pytest.mark.slow
def test_limits_of_a_cluster_need_the_exporters_libraries(tmp_path: Path) -> None:
    """A command of the pipeline that reads them names that extra, not its own."""
    line = ["recommend", "usage", "--bootstrap-servers", "127.0.0.1:9"]
    done = Installed(tmp_path, ["pipeline"]).run(RUN, json.dumps([line]))
    ((code, err),) = json.loads(done.stdout)
    assert (code, "pip install 'quotascope[exporter]'" in err) == (1, True), err
