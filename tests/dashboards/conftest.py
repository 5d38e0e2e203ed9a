"""The dashboards, and Grafana's own types and code to check them with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.dashboards.provision import installed

from quotascope.alerts import Site
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope


@pytest.fixture(scope="session")
def dashboards() -> dict[str, dict[str, Any]]:
    """Their JSON by uid, as ``quotascope dashboards write`` makes it."""
    return grafana_dashboards(Scope())


@pytest.fixture(scope="session", params=["plain", "recorded", "another label"], ids=str)
def variant(request: pytest.FixtureRequest) -> Scope:
    """What a user can choose."""
    return {
        "plain": Scope(),
        "recorded": Scope(recorded=True),
        "another label": Scope(site=Site(cluster_label="kafka_cluster")),
    }[request.param]


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js; a missing one is a failure."""
    found = shutil.which("node")
    assert found, "Node.js is missing: run tools/setup services"
    return found


@pytest.fixture(scope="session")
def grafana_code() -> Path:
    """The folder with Grafana's packages."""
    folder = installed()
    assert folder.exists(), f"{folder} is missing: run tools/setup services"
    return folder
