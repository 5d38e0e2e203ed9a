"""The dashboards, and Grafana's own types and code to check them with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dashboards.drawn import Drawing, drawing
from tests.dashboards.provision import installed, page
from tests.dashboards.stored import DEMO_SECONDS, demo, recorded, samples, started
from tests.integration.prometheus import Prometheus
from tests.provisioning import existing
from tools.demo_stack import fill

from quotascope.alerts import Site
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope


@pytest.fixture(scope="session")
def dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards' JSON by uid, as ``quotascope dashboards write`` makes it."""
    return grafana_dashboards(Scope())


@pytest.fixture(scope="session", params=["plain", "recorded", "another label"], ids=str)
def variant(request: pytest.FixtureRequest) -> Scope:
    return {
        "plain": Scope(),
        "recorded": Scope(recorded=True),
        "another label": Scope(site=Site(cluster_label="kafka_cluster")),
    }[request.param]


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node.js; a missing one is a failure."""
    program = shutil.which("node")
    assert program, "Node.js is missing: run tools/setup services"
    return program


@pytest.fixture(scope="session")
def grafana_code() -> Path:
    return existing(installed(), "packages of Grafana", "make services")


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus with the data, and with the recorded series of its known part."""
    folder = tmp_path_factory.mktemp("stored")
    fill(folder, samples())
    for _ in ("from the data", "from what was recorded", "from what was recorded of that"):
        with started(folder) as prometheus:
            lines = [*recorded(prometheus)]
        fill(folder, lines)
    fill(folder, demo(DEMO_SECONDS))
    with started(folder) as prometheus:
        yield prometheus


@pytest.fixture(scope="session")
def drawer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawing]:
    folder = existing(page(), "page of Grafana's components", "make services")
    with drawing(folder, tmp_path_factory.mktemp("drawn")) as drawer:
        yield drawer
