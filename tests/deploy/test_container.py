"""The Dockerfile is well made, and what it would run works, outside of a container."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from tests.cluster.ports import free_port
from tests.deploy.commands import ROOT, options_of_serve
from tests.deploy.dockerfile import IGNORE, PATH, build, copy_context, given, words
from tests.installed import closure
from tests.integration.child import Child
from tests.integration.eventually import eventually

from quotascope.exporter.config import Config

HADOLINT = Path(sys.executable).with_name("hadolint")
PLACE = "import quotascope.exporter as it; print(it.__file__, end='')"


def test_linter_finds_nothing(tmp_path: Path) -> None:
    """hadolint, with all of its rules, reports nothing about the Dockerfile, and something about a worse file."""
    worse = tmp_path / "Dockerfile"
    worse.write_text("FROM python\nUSER root\nCMD quotascope serve\n")
    process, negative = (
        subprocess.run([HADOLINT, path], capture_output=True, text=True, check=False) for path in (PATH, worse)
    )
    assert (process.returncode, process.stdout) == (0, "")
    assert "DL3006" in negative.stdout


def test_container_is_pinned_and_restricted() -> None:
    """Both stages have one pinned image, and the container runs the exporter on its port without root."""
    (image,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", PATH.read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", image)
    assert [given("FROM", stage) for stage in (0, 1)] == [["${PYTHON_IMAGE} AS build"], ["${PYTHON_IMAGE}"]]
    (user,) = given("USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert given("RUN") == []
    assert words("ENTRYPOINT") == ["quotascope"]
    assert words("HEALTHCHECK")[0] == "python"
    assert options_of_serve(words("CMD"))["config"]
    assert given("EXPOSE") == [str(Config().server.port)]


def test_builder_gets_what_a_wheel_is_made_of(tmp_path: Path) -> None:
    """The builder gets all packages and nothing else: no tests, no git, nothing that was built."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = set(project["tool"]["setuptools"]["package-dir"].values())
    files = {"LICENSE", "README.md", "deploy/requirements.txt", "pyproject.toml", "setup.py"}
    lines = IGNORE.read_text().splitlines()
    assert {line[1:] for line in lines if line.startswith("!")} == folders | files
    copy_context(tmp_path)
    assert not list(tmp_path.rglob("*.pyc"))


def test_packages_are_those_of_the_tests_by_hash() -> None:
    """
    The packages are all that the exporter and its extras need.

    They have the versions that the tests run with, each with hashes and from no address.
    """
    text = (ROOT / "deploy" / "requirements.txt").read_text()
    assert "://" not in text
    pinned = re.findall(
        r"^([\w.-]+)==(\S+?)(?: ; .*?)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert len(pinned) == len(re.findall("==", re.sub(r" ; .*", "", text)))
    versions = {canonicalize_name(name): version for name, version, _ in pinned}
    tested = (ROOT / "constraints.txt").read_text()
    tested_versions = {
        canonicalize_name(name): version for name, version in re.findall(r"^(\S+)==(\S+)$", tested, re.MULTILINE)
    }
    extras = re.findall(r"--extra (\w+)", (ROOT / "Makefile").read_text())
    assert extras == ["otlp", "patterns"]
    needed = closure([f"quotascope[{','.join(extras)}]"]) - {"quotascope"}
    assert needed | {"setuptools"} <= versions.keys()
    assert {name: versions[name] for name in needed} == {name: tested_versions[name] for name in needed}


@pytest.mark.timeout(600)  # on a busy machine
@pytest.mark.real
def test_what_is_built_runs(tmp_path: Path) -> None:
    """The builder's commands make an environment without pip, which serves and passes the health check."""
    installed = build(tmp_path)
    python = installed / "bin" / "python"
    place = subprocess.run([python, "-c", PLACE], check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert Path(place).is_relative_to(installed)
    assert not (installed / "bin" / "pip").exists()
    port = free_port()
    config = tmp_path / "quotascope.yaml"
    server = f"server: {{address: 127.0.0.1, port: {port}}}"
    source = f"sources: [{{url: http://127.0.0.1:{free_port()}/jolokia}}]"
    config.write_text(f"{server}\n{source}\n")
    command = [*words("ENTRYPOINT"), *words("CMD")]
    command = [word.replace("/etc/quotascope/quotascope.yaml", str(config)) for word in command]
    check = [word.replace(":9749", f":{port}") for word in words("HEALTHCHECK")]
    child = Child([str(installed / "bin" / command[0]), *command[1:]], tmp_path / "log")
    try:
        eventually(lambda: _healthy(child, [str(python), *check[1:]]), seconds=90)
    finally:
        assert child.end() == 0


def _healthy(child: Child, check: list[str]) -> None:
    child.must_run()
    process = subprocess.run(check, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
