"""A Collector for the length of a test."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ports import free_port
from tests.collector.provision import collector
from tests.integration import web
from tests.integration.child import Child
from tests.integration.eventually import eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    child: Child
    http: str
    """URL of the receiver over HTTP."""
    grpc: str
    """URL of the receiver over gRPC."""
    prometheus: str
    """URL of the page on which it shows what it got to Prometheus."""
    lines: Path

    def requests(self) -> list[dict[str, Any]]:
        """Return the OTLP that the Collector received, in JSON."""
        self.child.must_run()
        if not self.lines.exists():
            return []
        text = self.lines.read_text()
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def page(self) -> str:
        return web.ask(self.prometheus).text


@contextmanager
def collecting(folder: Path, tls: Mapping[str, str] | None = None) -> Iterator[Collector]:
    """A Collector that listens; with ``tls``, on https as its configuration says."""
    folder.mkdir(parents=True)
    ports = [free_port() for _ in range(3)]
    config = folder / "collector.yaml"
    config.write_text(yaml.safe_dump(_config(ports, folder / "lines.json", tls)))
    child = Child([str(collector()), f"--config={config}"], folder / "collector.log")
    scheme = "http" if tls is None else "https"
    http, grpc, prometheus = (f"127.0.0.1:{port}" for port in ports)
    try:
        eventually(lambda: _listens(child, ports))
        yield Collector(
            child=child,
            http=f"{scheme}://{http}",
            grpc=f"{scheme}://{grpc}",
            prometheus=f"http://{prometheus}/metrics",
            lines=folder / "lines.json",
        )
    finally:
        child.end()


def _listens(child: Child, ports: list[int]) -> None:
    child.must_run()
    for port in ports:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError as error:
            raise AssertionError(child.output()) from error


def _config(ports: list[int], lines: Path, tls: Mapping[str, str] | None) -> dict[str, Any]:
    http, grpc, prometheus = (f"127.0.0.1:{port}" for port in ports)
    more = {} if tls is None else {"tls": dict(tls)}
    protocols = {"http": {"endpoint": http, **more}, "grpc": {"endpoint": grpc, **more}}
    exporters = {"lines": {"path": str(lines)}, "prometheus": {"endpoint": prometheus, "without_scope_info": True}}
    pipeline = {"receivers": ["otlp"], "exporters": list(exporters)}
    return {
        "receivers": {"otlp": {"protocols": protocols}},
        "exporters": exporters,
        "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {"metrics": pipeline}},
    }
