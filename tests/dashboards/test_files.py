"""Dashboards and provisioning files on the disk, and the examples in docstrings."""

from __future__ import annotations

import doctest
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from quotascope.alerts import Dashboard, Site
from quotascope.dashboards import expressions, links, scope, steps, variables
from quotascope.dashboards.errors import DashboardsNotWritten, GrafanalibMissing
from quotascope.dashboards.files import grafana_dashboards, write
from quotascope.dashboards.scope import Scope


@pytest.mark.parametrize("module", [expressions, links, scope, steps, variables], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """The examples in the docstrings of the queries render as shown."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_dashboards_and_their_provisioning_are_written(tmp_path: Path) -> None:
    """
    Each dashboard has one file, named by its uid.

    Grafana reads the folder that is named, whatever characters it holds.
    """
    folder = tmp_path / "new" / 'a "b": {c} #'
    paths = write(folder, Scope())
    boards = {path.stem: json.loads(path.read_text("utf-8"))["uid"] for path in paths if path.suffix == ".json"}
    assert boards == {dashboard.uid: dashboard.uid for dashboard in Dashboard}
    assert {path.stem for path in (folder / "dashboards").glob("*.json")} == {*boards}
    (provider,) = yaml.safe_load((folder / "provisioning" / "dashboards.yaml").read_text("utf-8"))["providers"]
    assert Path(provider["options"]["path"]) == folder / "dashboards"
    # the type is the one that the dashboards' variable looks for
    (source,) = yaml.safe_load((folder / "provisioning" / "datasource-example.yaml").read_text("utf-8"))["datasources"]
    assert source["type"] == "prometheus"


def test_another_label_distinguishes_clusters() -> None:
    """Another label may distinguish clusters; the variable keeps its name, so that links stay the same."""
    text = json.dumps(grafana_dashboards(Scope(site=Site(cluster_label="kafka_cluster"))))
    assert 'var-cluster=${__data.fields[\\"kafka_cluster\\"]:percentencode}' in text


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A folder that cannot be created is named with the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DashboardsNotWritten, match=r"cannot write .*file.*: Not a directory"):
        write(tmp_path / "file", Scope())


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is an error with the command that installs it."""
    for name in [*sys.modules]:
        if name.startswith(("quotascope.dashboards.boards", "quotascope.dashboards.p")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafanalib", None)
    with pytest.raises(GrafanalibMissing, match=r"in a clone of quotascope: pip install '\.\[dashboards\]'$"):
        grafana_dashboards(Scope())
