"""The exporter as an operator runs it: the installed command, with a configuration file."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.node import Node
from tests.commands import COMMAND

from . import web
from .child import Child
from .eventually import eventually, some
from .page import Page

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Exporter:
    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True)
        self.config = folder / "quotascope.yaml"
        server = {"address": "127.0.0.1", "port": 0}
        write_config(self.config, {"server": server, **settings})
        command = [str(COMMAND), "serve", "--config", str(self.config)]
        # without settings of quotascope, which would shine through
        environ = {name: value for name, value in os.environ.items() if not name.startswith("QUOTASCOPE_")}
        self.child = Child(command, folder / "quotascope.log", environ)

    @cached_property
    def url(self) -> str:
        """Address that it reports itself."""
        (line,) = eventually(lambda: some(self.log("listening")), seconds=90)
        return str(line["url"])

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> web.Answer:
        return web.ask(self.url + path, headers=headers)

    def page(self) -> Page:
        answer = self.get("/metrics")
        assert answer.status == 200
        return Page.of(answer.text)

    def wait_until_ready(self) -> None:
        """Wait until the first collection is done."""

        def ready() -> None:
            assert self.get("/-/ready").status == 200

        assert self.url  # which may take longer than to become ready
        eventually(ready, seconds=90)

    def log(self, message: str = "", **fields: object) -> list[dict[str, Any]]:
        """Return the log lines with this message and these fields, in order."""
        self.child.must_run()
        lines = [json.loads(line) for line in self.child.lines()]
        return [line for line in lines if message in {"", line["msg"]} and fields.items() <= line.items()]


def settings_for(nodes: Sequence[Node], bootstrap: str | None, **kafka: object) -> dict[str, Any]:
    """Return a configuration that reads these nodes by Jolokia, and the limits without delay."""
    sources = [{"name": f"node-{node.node_id}", "dialect": "jolokia", "url": node.agents.jolokia} for node in nodes]
    settings = {"sources": sources, "collection": {"max_age_seconds": 0}, "log": {"format": "json"}}
    if bootstrap is None:
        return settings
    return {**settings, "kafka": {"bootstrap_servers": bootstrap, "refresh_interval_seconds": 0.5, **kafka}}


@contextmanager
def serving(folder: Path, settings: Mapping[str, Any]) -> Iterator[Exporter]:
    """Yield a running exporter, ready to be scraped."""
    exporter = Exporter(folder, settings)
    try:
        exporter.wait_until_ready()
        yield exporter
    finally:
        exporter.child.end()


def write_config(path: Path, settings: Mapping[str, Any]) -> None:
    path.write_text(yaml.safe_dump(dict(settings), allow_unicode=True))
