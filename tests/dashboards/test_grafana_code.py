"""Dashboards in Grafana's own types and code: they compile, transformations exist, and tables have the right rows."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.dashboards.boards import module_of, panels_of
from tests.dashboards.provision import SOURCES

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.schema_v2 import resource
from quotascope.dashboards.scope import Scope

pytestmark = pytest.mark.real
Json = dict[str, Any]
HOSTILE = 'a"b\\c` &x=1\nd'


def _tables(dashboards: dict[str, Json]) -> Iterator[Json]:
    for dashboard in dashboards.values():
        yield from (panel for panel in panels_of(dashboard) if panel["type"] == "table")


def _frame(ref_id: str, rows: list[Json], *, alone: bool = False) -> Json:
    """Return the frame that Grafana's Prometheus data source makes of an instant query with format table."""
    value = "Value" if alone else f"Value #{ref_id}"
    labels = sorted({label for row in rows for label in row if label != "value"})
    fields = [{"name": "Time", "type": "time", "values": [1] * len(rows)}]
    for label in labels:
        values = [row.get(label, "") for row in rows]
        fields.append({"name": label, "type": "string", "values": values})
    numbers = [row["value"] for row in rows]
    fields.append({"name": value, "type": "number", "values": numbers})
    return {"refId": ref_id, "fields": fields}


def _usage(user: str, client_id: str, value: float) -> Json:
    present = {label: name for label, name in {"user": user, "client_id": client_id}.items() if name}
    return {"entity": f"{user} / {client_id}", "cluster": "c", **present, "value": value}


@pytest.fixture(scope="module")
def answer(
    dashboards: dict[str, Json], node: str, grafana_code: Path, tmp_path_factory: pytest.TempPathFactory
) -> Json:
    """Run Grafana's code on a table with limits of some rows only, and on two without limits."""
    steps = next(panel for panel in _tables(dashboards) if panel["title"].startswith("Produce"))["transformations"]
    usage = [_usage("u", "c1", 7), _usage("u", "", 5), _usage("", HOSTILE, 3)]
    answers = (
        [_frame("A", usage), _frame("B", [_usage("u", "", 10)])],
        [_frame("A", usage), _frame("B", [])],
        [_frame("A", usage, alone=True)],
    )
    folder = tmp_path_factory.mktemp("grafana")
    shutil.copy(SOURCES / "inspect.cjs", folder)
    (folder / "node_modules").symlink_to(grafana_code / "node_modules")
    done = subprocess.run(
        [node, "--preserve-symlinks", "--preserve-symlinks-main", folder / "inspect.cjs"],
        input=json.dumps({"tables": [{"transformations": steps, "frames": frames} for frames in answers]}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reported: Json = json.loads(done.stdout)
    return reported


def _values(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for item in value.values():
            yield from _values(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, key)


def test_reducers_transformations_and_matchers_exist(dashboards: dict[str, Json], answer: Json) -> None:
    """Reducers, transformations and matchers exist: Grafana ignores unknown ones."""
    used = {
        "reducers": {calc for calcs in _values(dashboards, "calcs") for calc in calcs},
        "transformers": {step["id"] for steps in _values(dashboards, "transformations") for step in steps},
        "matchers": {matcher["id"] for matcher in _values(dashboards, "matcher")},
    }
    assert all(used.values())
    assert {kind: names for kind, names in used.items() if not names <= set(answer[kind])} == {}


def test_limits_stand_in_the_row_of_their_own_entity(answer: Json) -> None:
    """
    The limit of a user does not move to a pair of that user, though the query of limits has no client-id.

    A link finds renamed columns by label, whatever characters they hold.
    """
    table = answer["tables"][0]
    assert table["names"] == ["User", "Client-id", "Usage", "Limit", "Cluster"]
    by_name = {tuple(row[:2]): row[2:4] for row in table["rows"]}
    assert by_name == {("u", "c1"): [7, None], ("u", ""): [5, 10], ("", HOSTILE): [3, None]}
    assert {"cluster": "c", "user": "", "client_id": HOSTILE} in table["links"]


@pytest.mark.parametrize("table", [1, 2], ids=["empty", "not even a frame"])
def test_a_query_without_result_leaves_the_others(answer: Json, table: int) -> None:
    """A table without limits still shows usage."""
    drawn_table = answer["tables"][table]
    assert [row[drawn_table["names"].index("Usage")] for row in drawn_table["rows"]] == [7, 5, 3]


@pytest.fixture
def project(tmp_path: Path, grafana_code: Path) -> Path:
    for name in ("tsconfig.json", "types.ts"):
        shutil.copy(SOURCES / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(grafana_code / "node_modules")
    return tmp_path


def compiled(project: Path, node: str) -> str:
    tsc = project / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [node, tsc, "--project", project, "--preserveSymlinks"], capture_output=True, text=True, check=False
    )
    assert bool(done.stdout) is bool(done.returncode), done.stderr
    return done.stdout


def module_of_resource(document: Json) -> str:
    """Return a module with a dashboard of schema v2, by the type that Grafana generates from its own schema."""
    source = "import type { Spec } from '@grafana/schema/apis/dashboard.grafana.app/v2';"
    return f"{source}\nexport const spec = {json.dumps(document['spec'], indent=1)} satisfies Spec;\n"


def test_every_dashboard_of_schema_v2_compiles(project: Path, node: str) -> None:
    """Annotations, variables, elements, layouts and rules of every dashboard are as Grafana's schema has them."""
    for uid, document in _resources().items():
        (project / f"{uid}.ts").write_text(module_of_resource(document))
    assert compiled(project, node) == ""


MISTAKES_OF_V2: Final[Mapping[str, Callable[[Json], Any]]] = {
    "unknown_key": lambda spec: spec.update(graphTooltip=1),
    "unknown_hide": lambda spec: spec["variables"][0]["spec"].update(hide=0),
    "no_layout": lambda spec: spec.pop("layout"),
    "unknown_kind": lambda spec: spec["layout"]["spec"]["rows"][0].update(kind="Row"),
    "missing_query": lambda spec: next(iter(spec["elements"].values()))["spec"].pop("data"),
    "sort_as_number": lambda spec: spec["variables"][1]["spec"].update(sort=1),
}


def test_mistakes_in_schema_v2_are_found(project: Path, node: str) -> None:
    """The compiler complains about each of the usual mistakes: the check can fail."""
    for name, mistake in MISTAKES_OF_V2.items():
        wrong = copy.deepcopy(_resources()["quotascope-overview"])
        mistake(wrong["spec"])
        (project / f"{name}.ts").write_text(module_of_resource(wrong))
    complaints = compiled(project, node)
    assert {name for name in MISTAKES_OF_V2 if f"{name}.ts(" in complaints} == {*MISTAKES_OF_V2}


def _resources() -> dict[str, Json]:
    return {uid: resource(model) for uid, model in grafana_dashboards(Scope()).items()}


def test_every_dashboard_compiles(project: Path, node: str) -> None:
    """Grafana's types take frame, annotations, panels, options, field configuration and overrides of every variant."""
    for name, scope in {"plain": Scope(), "recorded": Scope(recorded=True)}.items():
        for uid, dashboard in grafana_dashboards(scope).items():
            (project / f"{uid}_{name}.ts").write_text(module_of(dashboard))
    assert compiled(project, node) == ""


def _first(dashboard: Json, of_type: str) -> Json:
    return next(panel for panel in panels_of(dashboard) if panel["type"] == of_type)


def _graph(dashboard: Json) -> Json:
    return _first(dashboard, "timeseries")


def _cells(dashboard: Json) -> Json:
    looks = (
        property_
        for override in _first(dashboard, "table")["fieldConfig"]["overrides"]
        for property_ in override["properties"]
    )
    return next(property_ for property_ in looks if property_["id"] == "custom.cellOptions")


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
    """The compiler reports each of the usual mistakes, so that the check can fail."""
    for name, mistake in MISTAKES.items():
        wrong = copy.deepcopy(dashboards["quotascope-overview"])
        mistake(wrong)
        (project / f"{name}.ts").write_text(module_of(wrong))
    complaints = compiled(project, node)
    assert {name for name in MISTAKES if f"{name}.ts(" in complaints} == {*MISTAKES}
