"""The dashboards are what Grafana 13's own types say a dashboard is."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def _null(dashboard: Json) -> None:
    dashboard["description"] = None


def _unknown_key(dashboard: Json) -> None:
    dashboard["sharedCrosshair"] = True


def _data_source_by_name(dashboard: Json) -> None:
    _first(dashboard, "stat")["datasource"] = "${datasource}"


def _unknown_look(dashboard: Json) -> None:
    custom = _first(dashboard, "timeseries")["fieldConfig"]["defaults"]["custom"]
    custom["drawStyle"] = "wiggle"


def _missing_option(dashboard: Json) -> None:
    del _first(dashboard, "timeseries")["options"]["legend"]["showLegend"]


def _unknown_cell(dashboard: Json) -> None:
    for override in _first(dashboard, "table")["fieldConfig"]["overrides"]:
        for each in override["properties"]:
            if each["id"] == "custom.cellOptions":
                each["value"] = {"type": "speedometer"}


def _unknown_color_mode(dashboard: Json) -> None:
    _first(dashboard, "stat")["options"]["colorMode"] = "loud"


def _first(dashboard: Json, of_type: str) -> Json:
    return next(each for each in panels_of(dashboard) if each["type"] == of_type)


MISTAKES: tuple[Callable[[Json], None], ...] = (
    _null,
    _unknown_key,
    _data_source_by_name,
    _unknown_look,
    _missing_option,
    _unknown_cell,
    _unknown_color_mode,
)


def test_mistakes_are_found(project: Path, node: str, dashboards: dict[str, Json]) -> None:
    """Each of the usual mistakes is one that the compiler complains about: the check can fail."""
    for mistake in MISTAKES:
        wrong = copy.deepcopy(dashboards["quotascope-overview"])
        mistake(wrong)
        (project / f"{mistake.__name__}.ts").write_text(module_of(wrong))
    complaints = compiled(project, node)
    found = {each.__name__ for each in MISTAKES if f"{each.__name__}.ts(" in complaints}
    assert found == {each.__name__ for each in MISTAKES}
