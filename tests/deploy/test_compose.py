"""The Compose file is valid, and starts what there is."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.deploy.commands import DEPLOY
from tests.deploy.dockerfile import words
from tests.deploy.provision import tools

from quotascope.exporter.config import Config, load_config

pytestmark = pytest.mark.real  # the schema of Compose, and promtool

FOLDER = DEPLOY / "compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())


def test_file_is_valid() -> None:
    """The file is valid by the schema of the Compose specification, which refuses unknown keys."""
    schema = json.loads((tools() / "compose-spec.json").read_text())
    jsonschema.validate(COMPOSE, schema)
    COMPOSE["services"]["quotascope"]["cap_dropped"] = []
    try:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(COMPOSE, schema)
    finally:
        del COMPOSE["services"]["quotascope"]["cap_dropped"]


def test_files_are_there() -> None:
    """
    The files of the build and of all mounts exist, except the password.

    The configuration is where the image reads it.
    """
    ours = COMPOSE["services"]["quotascope"]
    assert (FOLDER / ours["build"]["context"] / ours["build"]["dockerfile"]).is_file()
    mounts = [volume.split(":") for service in COMPOSE["services"].values() for volume in service["volumes"]]
    assert all((FOLDER / mount[0]).is_file() for mount in mounts if mount[0][0] == ".")
    assert words("CMD")[-1] in [mount[1] for mount in mounts]
    port = Config().server.port
    assert ours["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_configuration_loads(tmp_path: Path) -> None:
    """The configuration loads with the secret where Compose puts it."""
    (name,) = COMPOSE["services"]["quotascope"]["secrets"]
    text = (FOLDER / "quotascope.yaml").read_text()
    assert f"/run/secrets/{name}" in text
    (tmp_path / name).write_text("hidden")
    file = tmp_path / "quotascope.yaml"
    file.write_text(text.replace("/run/secrets", str(tmp_path)))
    assert load_config(file, {}).kafka is not None


def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    """The configuration of Prometheus and the rules mounted beside it pass promtool."""
    shutil.copyfile(FOLDER / "prometheus.yml", tmp_path / "prometheus.yml")
    (tmp_path / "rules").mkdir()
    for volume in COMPOSE["services"]["prometheus"]["volumes"]:
        source, _, target = volume.partition(":")
        if "/rules/" in target:
            shutil.copyfile(FOLDER / source, tmp_path / "rules" / Path(source).name)
    checked = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "2 rule files found" in checked.stdout
