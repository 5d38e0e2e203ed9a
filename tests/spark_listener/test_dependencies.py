from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.spark_listener.recordings import VERSIONS, log_of

ROOT = Path(__file__).parents[2]
DRIVER = """
import sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        first, _, rest = name.partition(".")
        ours = first == "quotascope" and rest.partition(".")[0] in {"", "clients", "metrics", "pages", "spark_listener"}
        brought = first in sys.argv[3:] or "quotascope__mypyc" in name
        if not ours and not brought and first not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from quotascope.spark_listener import attach, attaching, run
from quotascope.spark_listener.event_log import EventLog
from quotascope.spark_listener.exposition import start_reporting
from quotascope.spark_listener.job import Job, write_summary
from quotascope.spark_listener.settings import resolve
from quotascope.spark_listener.sources import bus, callbacks, choice, event_log, pull, streaming
from quotascope.spark_listener.task.py_files import write_py_files

job = Job("app")
with EventLog(Path(sys.argv[1])) as log:
    log.feed(job)
assert job.snapshot().events > 10
settings, _ = resolve({"spark.quotascope.otlp.endpoint": "http://127.0.0.1:9"}, {})
reporting = start_reporting(settings, {"spark.driver.host": "127.0.0.1"}, lambda: [job.snapshot()], app_id="app-1")
assert reporting.url
reporting.close()
write_summary(job.snapshot(), Path(sys.argv[2], "summary.json"))
write_py_files(Path(sys.argv[2], "tasks.zip"))
print(*reporting.problems)
"""


@pytest.mark.slow
def test_driver_needs_what_its_guide_installs(tmp_path: Path) -> None:
    """A listener with its page and sources imports nothing of the exporter, the command line or their libraries; OTLP names its extra."""
    guide = (ROOT / "docs" / "spark.md").read_text()
    (line,) = re.findall(r"^pip install (?!-)(.*?) +#", guide, re.MULTILINE)
    modules = line.replace("-", "_").split()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            DRIVER,
            log_of(VERSIONS[0], "plain"),
            tmp_path,
            *modules,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "metrics are not pushed: this needs OpenTelemetry's packages: pip install 'quotascope[spark-otlp]'\n"  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "arguments", "expected"),
    [
        ("typer", ["--help"], (1, "the command line needs typer: pip install typer")),
        ("numpy aiohttp yaml prometheus_client", ["spark", "runner"], (0, "run.py")),
        ("yaml", ["serve", "--config", "x.yaml"], (1, "is not installed: pip install quotascope, without --no-deps")),
    ],
)  # fmt: skip
def test_command_without_its_libraries(
    missing: str, arguments: list[str], expected: tuple[int, str]
) -> None:
    """One line says what to install, and what a driver needs of the command line needs typer alone."""
    code = f"""
import sys
for name in {missing.split()!r}:
    sys.modules[name] = None
sys.argv[1:] = {arguments!r}
from quotascope.cli.main import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    said = done.stderr if expected[0] else done.stdout
    assert (done.returncode, expected[1] in said) == (expected[0], True), done.stderr
    assert "Traceback" not in done.stderr


def test_otlp_of_a_driver_fits_the_versions_of_a_job() -> None:
    """A driver shares its environment with the job, so no minor version is pinned, as it is for the exporter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["spark-otlp"]
    ours = [each for each in extra if each.startswith("opentelemetry")]
    assert ours
    assert all(each.endswith(">=1.35,<2") for each in ours)
