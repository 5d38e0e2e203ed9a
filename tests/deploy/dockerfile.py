"""
The Dockerfile, as far as it can be carried out without a container.

Where this is not possible is written in docs/start/deployment.md.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.deploy.commands import DEPLOY, ROOT

PATH = DEPLOY / "container" / "Dockerfile"
IGNORE = ROOT / ".dockerignore"
INSTALLED = "/opt/quotascope"


def given(keyword: str, stage: int = -1) -> list[str]:
    """
    Return the arguments of these instructions of a stage, by default the last one.

    The first is 0, and FROM belongs to it.
    """
    lines = (line for line in PATH.read_text().splitlines() if not line.startswith("#"))
    stages: list[list[str]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.startswith("FROM "):
            stages.append([])
        if stages:
            stages[-1].append(line)
    instructions = (line.partition(" ") for line in stages[stage])
    return [arguments.strip() for instruction, _, arguments in instructions if instruction == keyword]


def words(keyword: str) -> list[str]:
    """Return the words of the one instruction of the last stage that is in JSON, as all that start programs are."""
    (arguments,) = given(keyword)
    return list(json.loads(arguments[arguments.index("[") :]))


def copy_context(target: Path) -> None:
    """Copy the files that `.dockerignore` lets the builder have."""
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
    Run the first stage's RUN in a copy of the context; return the folder that the second stage copies.

    Dependencies are installed as in the image, by their hashes.
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
