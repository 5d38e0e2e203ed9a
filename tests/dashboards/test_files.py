"""Dashboards and provisioning files on the disk."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from quotascope.alerts import Dashboard, Site
from quotascope.dashboards.errors import DashboardsNotWritten, GrafanalibMissing
from quotascope.dashboards.files import grafana_dashboards, write
from quotascope.dashboards.scope import Scope


def test_every_dashboard_is_written_as_json(tmp_path: Path) -> None:
    """One file for each, named by its uid."""
    paths = write(tmp_path / "new" / "folder", Scope())
    found = {json.loads(each.read_text("utf-8"))["uid"] for each in paths if each.suffix == ".json"}
    assert found == {each.uid for each in Dashboard}


def test_provisioning_points_to_the_written_folder(tmp_path: Path) -> None:
    """Grafana reads the folder that is named, whatever characters it holds."""
    folder = tmp_path / 'a "b": {c} #'
    write(folder, Scope())
    text = (folder / "provisioning" / "dashboards.yaml").read_text("utf-8")
    (provider,) = yaml.safe_load(text)["providers"]
    assert Path(provider["options"]["path"]) == folder / "dashboards"
    assert len(list((folder / "dashboards").glob("*.json"))) == len(Dashboard)


def test_the_example_of_a_data_source_is_a_prometheus(tmp_path: Path) -> None:
    """The type is the one that the dashboards' variable looks for."""
    write(tmp_path, Scope())
    text = (tmp_path / "provisioning" / "datasource-example.yaml").read_text("utf-8")
    (source,) = yaml.safe_load(text)["datasources"]
    assert source["type"] == "prometheus"


def test_another_label_distinguishes_clusters() -> None:
    """The variable keeps its name, so that links stay the same; queries use the label."""
    made = grafana_dashboards(Scope(site=Site(cluster_label="kafka_cluster")))
    text = json.dumps(made)
    assert 'kafka_cluster=~\\"$cluster\\"' in text
    assert '{cluster=~\\"$cluster\\"' not in text
    assert 'var-cluster=${__data.fields[\\"kafka_cluster\\"]:percentencode}' in text


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The message says what and why."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DashboardsNotWritten, match=r"cannot write .*file.*: Not a directory"):
        write(tmp_path / "file", Scope())


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who installed without the extra reads the command that adds it."""
    for name in [*sys.modules]:
        if name.startswith(("quotascope.dashboards.boards", "quotascope.dashboards.p")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafanalib", None)
    with pytest.raises(GrafanalibMissing, match=r"pip install 'quotascope\[dashboards\]'"):
        grafana_dashboards(Scope())
