from __future__ import annotations

from pathlib import Path
from typing import Any

from quotascope.exporter.config import Config
from quotascope.exporter.config.load import loaded
from quotascope.exporter.reload.changes import (
    changed_fields,
    changed_files,
    needs_restart,
    without_restart,
)


def config(**given: Any) -> Config:
    """A configuration."""
    return Config.model_validate(given)


def test_fields_are_named_and_values_are_not() -> None:
    """A list counts as one field, and so does a section that comes or goes."""
    old = config(
        cluster="a",
        sources=[{"url": "http://a:1"}],
        collection={"max_age_seconds": 1},
        otlp={},
    )
    new = config(
        cluster="b",
        sources=[{"url": "http://b:1"}],
        collection={"max_age_seconds": 2, "margin_seconds": 1},
        server={"port": 1},
    )
    assert list(changed_fields(old, new)) == [
        "cluster",
        "sources",
        "server.port",
        "collection.max_age_seconds",
        "collection.margin_seconds",
        "otlp",
    ]
    assert list(changed_fields(new, new)) == []


def test_where_it_listens_needs_a_restart() -> None:
    """Everything else does not."""
    old, new = config(), config(cluster="b", server={"port": 1, "address": "::1"})
    fields = list(changed_fields(old, new))
    assert needs_restart(fields) == ["server.address", "server.port"]
    kept = without_restart(old, new)
    assert (kept.cluster, kept.server) == ("b", old.server)


def test_files_are_named(tmp_path: Path) -> None:
    """A password that was rotated shows by the name of its file."""
    file = tmp_path / "password"
    file.write_text("old")
    auth = {"username": "me", "password_file": file}
    settings = config(sources=[{"url": "http://a:1", "basic_auth": auth}])
    old = loaded(settings)
    assert list(changed_files(old, loaded(settings))) == []
    file.write_text("new")
    assert list(changed_files(old, loaded(settings))) == [str(file)]
