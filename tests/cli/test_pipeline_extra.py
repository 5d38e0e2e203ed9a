"""What the commands of the pipeline need."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from quotascope.cli import options
from quotascope.pipeline.errors import MissingExtra

ROOT = Path(__file__).parents[2]


def libraries() -> set[str]:
    """Names of the libraries of the extra `pipeline`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["optional-dependencies"]["pipeline"]
    return {re.split(r"[^\w-]", each)[0] for each in needed}


def test_each_library_of_the_extra_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none of them is installed, the message names them all."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as raised:
        options.check_extra()
    named = str(raised.value).removeprefix("this needs ").partition(":")[0]
    assert set(named.split(", ")) == libraries()


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "logs", "--into", ""),
        ("history", "clean", ""),
        ("whatif", " ", "--candidates", "candidates.yaml"),
        ("recommend", ""),
    ],
)
def test_an_empty_folder_is_refused(run: Run, command: tuple[str, ...]) -> None:
    """An unset variable of a shell would mean tables at the root of the file system."""
    code, _, err = run(*command)
    assert (code, "a folder or URI is needed" in err) == (2, True)
