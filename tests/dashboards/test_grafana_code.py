"""Grafana's own code knows our units and transformations, and makes of tables what was meant."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dashboards.provision import SOURCES
from tests.dashboards.typescript import panels_of

pytestmark = pytest.mark.real
Json = dict[str, Any]
HOSTILE = 'a"b\\c` &x=1\nd'


def _tables(dashboards: dict[str, Json]) -> Iterator[Json]:
    for dashboard in dashboards.values():
        yield from (each for each in panels_of(dashboard) if each["type"] == "table")


def _frame(ref_id: str, rows: list[Json], *, alone: bool = False) -> Json:
    """What Grafana's Prometheus data source makes of an instant query with format table."""
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
    """What Grafana's code makes of a table with limits of some rows only, and of two without any."""
    steps = next(one for one in _tables(dashboards) if one["title"].startswith("Produce"))["transformations"]
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
        for each in value.values():
            yield from _values(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _values(each, key)


def test_units_exist(dashboards: dict[str, Json], answer: Json) -> None:
    """An unknown unit is shown as a plain number without complaint."""
    units = set(_values(dashboards, "unit"))
    for panel in _tables(dashboards):
        for each in _values(panel["fieldConfig"]["overrides"], "properties"):
            units |= {one["value"] for one in each if one["id"] == "unit"}
    units.discard("")
    assert units
    assert units <= set(answer["units"])
    assert "nosuchunit" not in answer["units"]


def test_reducers_transformations_and_matchers_exist(dashboards: dict[str, Json], answer: Json) -> None:
    """What Grafana does not know is left out in silence."""
    used = {
        "reducers": {each for calcs in _values(dashboards, "calcs") for each in calcs},
        "transformers": {each["id"] for steps in _values(dashboards, "transformations") for each in steps},
        "matchers": {each["id"] for each in _values(dashboards, "matcher")},
    }
    assert all(used.values())
    assert {kind: names for kind, names in used.items() if not names <= set(answer[kind])} == {}


def test_limits_stand_in_the_row_of_their_own_entity(answer: Json) -> None:
    """
    The limit of a user does not move to a pair of that user, though the query of limits has no client-id.

    After columns are renamed, a link still finds them by label, whatever characters they hold.
    """
    table = answer["tables"][0]
    assert table["names"] == ["User", "Client-id", "Usage", "Limit", "Cluster"]
    by_name = {tuple(row[:2]): row[2:4] for row in table["rows"]}
    assert by_name == {("u", "c1"): [7, None], ("u", ""): [5, 10], ("", HOSTILE): [3, None]}
    assert {"cluster": "c", "user": "", "client_id": HOSTILE} in table["links"]


@pytest.mark.parametrize("table", [1, 2], ids=["empty", "not even a frame"])
def test_a_query_without_result_leaves_the_others(answer: Json, table: int) -> None:
    """When no one has a limit, usage is shown as before."""
    shown = answer["tables"][table]
    assert [row[shown["names"].index("Usage")] for row in shown["rows"]] == [7, 5, 3]
