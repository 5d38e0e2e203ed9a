from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quotascope.exporter.discovery.file_sd import MAX_BYTES
from quotascope.exporter.discovery.files import FileFinder
from quotascope.exporter.discovery.target import UrlTemplate


def finder(folder: Path, **match: str) -> FileFinder:
    """Looks at all JSON files of a folder."""
    template = UrlTemplate("http://{target}/jolokia")
    return FileFinder([str(folder / "*.json")], template, match, "node_id", 5.0)


def write(path: Path, *targets: str, **labels: str) -> None:
    """Replace a file; its time of change is another one even within the clock's resolution."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(json.dumps([{"targets": targets, "labels": labels}]))
    os.utime(path, ns=(before + 1, before + 1))


async def names(found: FileFinder) -> tuple[list[str], str | None]:
    """The names of the targets, and the problem."""
    result = await found.find()
    return [target.name for target in result.targets], result.problem


async def test_files_are_followed(tmp_path: Path) -> None:
    """New files, changes and removed files show with the next look."""
    looking = finder(tmp_path)
    found, problem = await names(looking)
    assert found == []
    assert problem is not None
    assert problem.endswith("*.json: there is no such file")
    write(tmp_path / "a.json", "a:1")
    write(tmp_path / "b.json", "b:1")
    assert await names(looking) == (["a:1", "b:1"], None)
    write(tmp_path / "a.json", "a:1", "a:2")
    assert await names(looking) == (["a:1", "a:2", "b:1"], None)
    (tmp_path / "b.json").unlink()
    assert await names(looking) == (["a:1", "a:2"], None)


async def test_labels_choose_groups_and_tell_node_ids(tmp_path: Path) -> None:
    """One file may be for several jobs; the id is for agents whose page does not tell it."""
    write(tmp_path / "a.json", "a:1", job="kafka", node_id="7")
    write(tmp_path / "b.json", "b:1", job="other")
    result = await finder(tmp_path, job="kafka").find()
    assert [(target.name, target.node_id) for target in result.targets] == [("a:1", 7)]


async def test_file_that_breaks_keeps_its_targets(tmp_path: Path) -> None:
    """A file that is half written costs nothing; other files are read all the same."""
    looking = finder(tmp_path)
    write(tmp_path / "a.json", "a:1")
    await looking.find()
    (tmp_path / "a.json").write_text('[{"targets": ["a:')
    write(tmp_path / "b.json", "b:1")
    found, problem = await names(looking)
    assert found == ["a:1", "b:1"]
    assert problem is not None
    assert "a.json: cannot be parsed" in problem


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b" " * (MAX_BYTES + 1), "longer than 1 MiB"),
        (b"\xff", "is not UTF-8 text"),
        (b'[{"targets": ["a:1"], "labels": {"node_id": "x"}}]', "no node id"),
    ],
)
async def test_hostile_file_is_told(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    """With its name and the reason, and nothing of it is used."""
    (tmp_path / "a.json").write_bytes(content)
    found, problem = await names(finder(tmp_path))
    assert found == []
    assert problem is not None
    assert reason in problem
    assert "a.json" in problem


async def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A folder with the name of a file is one of them."""
    (tmp_path / "a.json").mkdir()
    _, problem = await names(finder(tmp_path))
    assert problem is not None
    assert "a.json: cannot be read: Is a directory" in problem
