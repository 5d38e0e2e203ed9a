"""The unit for systemd is accepted, hardened, and starts what there is."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.deploy.commands import DEPLOY, options_of_serve

from quotascope.exporter.config import load_config

if TYPE_CHECKING:
    from tests.deploy.conftest import Service

pytestmark = pytest.mark.real  # systemd's own tools

UNIT = DEPLOY / "systemd" / "quotascope.service"
CONFIG = DEPLOY / "systemd" / "quotascope.yaml"
EXPOSURE = 15
"""Tenths of systemd's own measure, where 100 is a service that is not hardened at all."""


def values(key: str) -> list[str]:
    """Return the values that the unit sets a key to, one for each line."""
    lines = UNIT.read_text().splitlines()
    return [value for name, _, value in (line.partition("=") for line in lines) if name == key]


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def verified(unit: Path, text: str) -> tuple[int, str, str]:
    """Return systemd's verdict on a unit with this text, whose program is assumed to exist."""
    (command,) = values("ExecStart")
    unit.write_text(text.replace(command.split()[0], str(shutil.which("true"))))
    process = analyzed("verify", "--man=no", unit)
    return process.returncode, process.stdout, process.stderr


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """No key is unknown, which would be found, and no value is ignored."""
    unit = tmp_path / UNIT.name
    assert verified(unit, UNIT.read_text()) == (0, "", "")
    *_, errors = verified(unit, "[Service]\nExecStart=/bin/true\nProtectEverything=yes\n")
    assert "ProtectEverything" in errors


def test_systemd_accepts_the_template_for_several_clusters(tmp_path: Path) -> None:
    """Each cluster has its configuration and its password after the documented command."""
    page = (DEPLOY.parent / "docs/start/deployment.md").read_text()
    (change,) = re.findall(r"^sed '(.*)' deploy/systemd/quotascope\.service > ", page, re.MULTILINE)
    text = subprocess.check_output(["sed", change, UNIT], text=True)
    assert "--config /etc/quotascope/%i.yaml" in text
    assert "/etc/quotascope/secrets/%i-kafka-password" in text
    assert verified(tmp_path / "quotascope@east.service", text) == (0, "", "")


def test_unit_is_hardened() -> None:
    """The exposure by systemd's own measure is low."""
    process = analyzed("security", "--offline=true", f"--threshold={EXPOSURE}", UNIT)
    assert process.returncode == 0, process.stdout[-300:]


def test_command_is_one_of_ours() -> None:
    """The words after the program are a command with options that exist."""
    (command,) = values("ExecStart")
    program, *words = command.split()
    assert Path(program).name == "quotascope"
    assert options_of_serve(words)["config"] == Path("/etc/quotascope/quotascope.yaml")


def test_configuration_takes_the_credentials(tmp_path: Path) -> None:
    """Each secret that the configuration wants is one that the unit loads."""
    for credential in values("LoadCredential"):
        (tmp_path / credential.partition(":")[0]).write_text("hidden\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    config = load_config(CONFIG, environ=environ)
    assert config.kafka is not None
    assert config.kafka.sasl is not None
    assert config.kafka.sasl.password_file == tmp_path / "kafka-password"


def test_manager_hears_of_start_and_end(service: Service) -> None:
    """The manager is told when the exporter is ready, also after SIGHUP, and when it stops."""
    (reload,) = values("ExecReload")
    assert reload == "/bin/kill -HUP $MAINPID"
    assert values("Type") == ["notify"]
    service.child.signal(signal.SIGHUP)
    assert service.child.end() == 0
    assert service.reported() == "STOPPING=1"


def test_manager_hears_that_the_exporter_is_alive(service: Service) -> None:
    """The exporter reports as often as the unit asks for, as long as the event loop turns."""
    assert values("WatchdogSec") == ["2min"]
    time.sleep(2)
    assert service.child.end() == 0
    assert service.reported() == "STOPPING=1"
    assert service.alive >= 2
