"""The dashboards are what Grafana 13's own types say a dashboard is."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.dashboards.provision import SOURCES
from tests.dashboards.typescript import module_of, panels_of

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

pytestmark = pytest.mark.real
Json = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path, grafana_code: Path) -> Path:
    """A TypeScript project that finds Grafana's packages."""
    for each in ("tsconfig.json", "types.ts"):
        shutil.copy(SOURCES / each, tmp_path)
    (tmp_path / "node_modules").symlink_to(grafana_code / "node_modules")
    return tmp_path


def compiled(project: Path, node: str) -> str:
    """What the compiler complains about."""
    tsc = project / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [node, tsc, "--project", project, "--preserveSymlinks"], capture_output=True, text=True, check=False
    )
    assert bool(done.stdout) is bool(done.returncode), done.stderr
    return done.stdout


def test_every_dashboard_compiles(project: Path, node: str) -> None:
    """Frame, annotations, panels, options, field configuration and overrides, of every variant."""
    for name, scope in {"plain": Scope(), "recorded": Scope(recorded=True)}.items():
        for uid, dashboard in grafana_dashboards(scope).items():
            (project / f"{uid}_{name}.ts").write_text(module_of(dashboard))
    assert compiled(project, node) == ""


def _first(dashboard: Json, of_type: str) -> Json:
    return next(each for each in panels_of(dashboard) if each["type"] == of_type)


def _graph(dashboard: Json) -> Json:
    return _first(dashboard, "timeseries")


def _cells(dashboard: Json) -> Json:
    looks = (one for each in _first(dashboard, "table")["fieldConfig"]["overrides"] for one in each["properties"])
    return next(one for one in looks if one["id"] == "custom.cellOptions")


MISTAKES: Final[Mapping[str, Callable[[Json], Any]]] = {
    "null": lambda board: board.update(description=None),
    "unknown_key": lambda board: board.update(sharedCrosshair=True),
    "data_source_by_name": lambda board: _first(board, "stat").update(datasource="${datasource}"),
    "unknown_look": lambda board: _graph(board)["fieldConfig"]["defaults"]["custom"].update(drawStyle="wiggle"),
    "missing_option": lambda board: _graph(board)["options"]["legend"].pop("showLegend"),
    "unknown_cell": lambda board: _cells(board).update(value={"type": "speedometer"}),
    "unknown_color_mode": lambda board: _first(board, "stat")["options"].update(colorMode="loud"),
}


def test_mistakes_are_found(project: Path, node: str, dashboards: dict[str, Json]) -> None:
    """Each of the usual mistakes is one that the compiler complains about: the check can fail."""
    for name, mistake in MISTAKES.items():
        wrong = copy.deepcopy(dashboards["quotascope-overview"])
        mistake(wrong)
        (project / f"{name}.ts").write_text(module_of(wrong))
    complaints = compiled(project, node)
    assert {name for name in MISTAKES if f"{name}.ts(" in complaints} == {*MISTAKES}
