"""The package works by itself and on Python 3.8, where tasks of old Spark clusters may run."""

import shutil
import subprocess
import sys
from pathlib import Path

import quotascope.clients.accounting

FOLDER = Path(quotascope.clients.accounting.__file__).parent
USE = """
from accounting import ThrottleAccount, confluent_kafka_config
import sys
account = ThrottleAccount()
confluent_kafka_config({}, account, side="write")
assert account.totals()
assert not [name for name in sys.modules if name.split(".")[0] in ("quotascope", "kafka", "confluent_kafka")]
"""


def test_it_needs_no_newer_python() -> None:
    """Vermin knows which version of Python brought each part of the language and of its library."""
    vermin = shutil.which("vermin", path=str(Path(sys.executable).parent))
    assert vermin, "vermin is not installed"
    run = [vermin, "--no-tips", "--violations", "--target=3.8-", str(FOLDER)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_needs_nothing_of_ours(tmp_path: Path) -> None:
    """The folder alone, under any name, is the whole of it; libraries are imported only for their own clients."""
    shutil.copytree(FOLDER, tmp_path / "accounting")
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
