"""What the commands of the pipeline need."""

import re
import tomllib
from pathlib import Path

import pytest

from quotascope.cli import pipeline_options
from quotascope.pipeline.errors import MissingExtra

ROOT = Path(__file__).parents[2]


def libraries() -> set[str]:
    """Names of the libraries of the extra `pipeline`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["optional-dependencies"]["pipeline"]
    return {re.split(r"[^\w-]", each)[0] for each in needed}


def test_each_library_of_the_extra_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where none of them is installed, the message names them all."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as raised:
        pipeline_options.check_extra()
    named = str(raised.value).removeprefix("this needs ").partition(":")[0]
    assert set(named.split(", ")) == libraries()


def test_the_page_names_what_workers_need() -> None:
    """Each library of the extra is in the sentence about Spark's nodes."""
    page = (ROOT / "docs" / "pipeline.md").read_text()
    (sentence,) = re.findall(r"needs Python with quotascope, ([^.]*)\.", page)
    assert set(re.split(r", | and ", sentence.lower())) == libraries()
