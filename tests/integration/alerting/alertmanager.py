"""A real Alertmanager on the loopback interface."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ports import free_port
from tests.integration import web
from tests.integration.child import Child
from tests.integration.eventually import eventually


class AlertmanagerMissing(Exception):
    """Alertmanager is not installed."""


class Alertmanager:
    """
    An Alertmanager with a configuration.

    Args:
        folder: For its configuration, data and log.
        config: What `alertmanager.yml` holds.

    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
        if program is None:
            raise AlertmanagerMissing("no `alertmanager`: run `make services`")
        folder.mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        path = folder / "alertmanager.yml"
        path.write_text(yaml.safe_dump(dict(config)))
        command = [
            program,
            f"--config.file={path}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]
        self.child = Child(command, folder / "alertmanager.log")

    def ready(self) -> None:
        """AssertionError until it serves."""
        self.child.must_run()
        assert web.ask(f"http://{self.address}/-/ready").status == 200

    def alerts(self, state: str) -> list[dict[str, Any]]:
        """The alerts that it knows in a state: `active` or `suppressed`."""
        self.child.must_run()
        answer = web.ask(f"http://{self.address}/api/v2/alerts")
        assert answer.status == 200, answer.text
        return [alert for alert in json.loads(answer.body) if alert["status"]["state"] == state]


@contextmanager
def alerting(folder: Path, config: Mapping[str, Any]) -> Iterator[Alertmanager]:
    """An Alertmanager for the length of a `with` block."""
    alertmanager = Alertmanager(folder, config)
    try:
        eventually(alertmanager.ready)
        yield alertmanager
    finally:
        alertmanager.child.end()
