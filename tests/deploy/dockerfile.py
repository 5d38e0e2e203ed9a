"""The Dockerfile, as far as it can be carried out without a container: where this is not possible is written in docs/deployment.md."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.commands import DEPLOY, ROOT

PATH = DEPLOY / "container" / "Dockerfile"
IGNORE = ROOT / ".dockerignore"
INSTALLED = "/opt/quotascope"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of them, with the lines that it goes on in."""

    keyword: str
    arguments: str


def instructions(stage: int) -> list[Instruction]:
    """Those of a stage, the first of which is 0; its FROM comes first."""
    stages: list[list[Instruction]] = []
    for each in _parsed(PATH.read_text()):
        if each.keyword == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(each)
    return stages[stage]


def _parsed(text: str) -> Iterator[Instruction]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    whole = "\n".join(lines).replace("\\\n", " ")
    for line in whole.splitlines():
        if line.strip():
            keyword, _, arguments = line.partition(" ")
            yield Instruction(keyword, arguments.strip())


def given(keyword: str, stage: int = -1) -> list[str]:
    """The arguments of these instructions of a stage, the last one unless given otherwise."""
    return [each.arguments for each in instructions(stage) if each.keyword == keyword]


def words(keyword: str) -> list[str]:
    """Those of the one instruction of the last stage that is in JSON, as all that start programs are."""
    (arguments,) = given(keyword)
    return list(json.loads(arguments[arguments.index("[") :]))


def copy_context(target: Path) -> None:
    """Copy what the builder gets: what `.dockerignore` lets through."""
    lines = IGNORE.read_text().splitlines()
    ignored = (line.removeprefix("**/") for line in lines if line.startswith("**/"))
    without = shutil.ignore_patterns(*ignored)
    for name in (line[1:] for line in lines if line.startswith("!")):
        source = ROOT / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=without)
        else:
            shutil.copyfile(source, target / name)


def build(folder: Path) -> Path:
    """
    Run the first stage's RUN in a copy of the context; returns the folder that the second stage copies.

    What it depends on is installed as there, by its hashes.
    """
    source, installed = folder / "source", folder / "installed"
    source.mkdir()
    copy_context(source)
    environment = {**os.environ, "PIP_NO_COMPILE": "1"}
    for line in given("ENV", 0):
        environment |= dict(pair.split("=", 1) for pair in line.split())
    environment.pop("PIP_NO_CACHE_DIR")  # spares the registry
    for line in given("RUN", 0):
        subprocess.run(
            ["/bin/sh", "-ec", line.replace(INSTALLED, str(installed))],
            cwd=source,
            env=environment,
            check=True,
            capture_output=True,
        )
    return installed
