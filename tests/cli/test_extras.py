"""Each command with the libraries of a plain installation, and with those of one extra more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_flags import COMMANDS as ALL
from tests.installed import Installed
from tests.spark_listener.report.throttled import log

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
    "serve": "",
    "status --exporter http://127.0.0.1:9": "",
    "top --exporter http://127.0.0.1:9 --json": "",
    "doctor": "",
    "explain --user a": "",
    "request-topic log --bootstrap-servers 127.0.0.1:9 --wait-seconds 1": "",
    "demo --duration 0": "",
    "quotas list --exporter http://127.0.0.1:9": "",
    "quotas set producer_byte_rate=1 --user a": "",
    "quotas remove producer_byte_rate --user a": "",
    "quotas diff quotas.yaml": "",
    "quotas export": "",
    "config check quotas.yaml": "",
    "config example": "",
    "alerts write alerts": "",
    "alerts config": "",
    "alerts mixin": "dashboards",
    "rules jmx-exporter": "",
    "ingest app-1 --into usage": "pipeline",
    "episodes usage": "pipeline",
    "usage usage": "pipeline",
    "whatif usage --candidates quotas.yaml": "pipeline",
    "recommend usage": "pipeline",
    "blame usage": "pipeline",
    "shadow status --exporter http://127.0.0.1:9": "",
    "shadow stream --topic kafka://b:1/t --candidates quotas.yaml --into usage": "pipeline",
    "shadow verify a --folder usage --since 2026-01-01": "pipeline",
    "history status usage": "pipeline",
    "history compact usage": "pipeline",
    "history drop usage --before 2026-01-01": "pipeline",
    "history clean usage": "pipeline",
    "dashboards write dashboards": "dashboards",
    "dashboards push --grafana-url http://127.0.0.1:9 --grafana-token-file token": "dashboards",
    "spark report app-1": "",
    "spark py-files tasks.zip": "",
    "spark jar plugin.jar": "",
    "spark runner": "",
    "spark submit-script": "",
}


def test_every_command_is_here() -> None:
    """A new command says which extra it needs."""
    names = [path.removeprefix("quotascope ") for path, _ in ALL]
    lines = [f"{line} " for line in COMMANDS]
    assert len(names) == len(lines)
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", "dashboards", "pipeline"])
def test_a_command_names_the_extra_that_it_lacks(extra: str, tmp_path: Path) -> None:
    """Most lack nothing in a plain installation; of the others, one line says what to install, and then they lack nothing."""
    work = tmp_path / "work"
    work.mkdir()
    log(work / "app-1")
    (work / "quotas.yaml").write_text("quotas: []\n")
    (work / "token").write_text("secret")
    asked = {line: needed for line, needed in COMMANDS.items() if extra in {"", needed}}
    words = json.dumps([line.split() for line in asked])
    done = Installed(tmp_path, [f"quotascope[{extra}]"]).run(RUN, words, folder=work)
    assert done.returncode == 0, done.stderr
    ends = dict(zip(asked, json.loads(done.stdout), strict=True))
    lacking = {line: end for line, end in ends.items() if "pip install 'quotascope" in end[1]}
    assert lacking.keys() == {line for line, needed in asked.items() if needed != extra}
    for line, (code, err) in lacking.items():
        assert err.endswith(f": pip install 'quotascope[{asked[line]}]'\n")
        assert (code, err.count("\n")) == (1, 1), err
    assert not any("unexpected" in err for _, err in ends.values())
