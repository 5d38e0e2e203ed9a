from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

import pytest

from quotascope.clients.reading import content_of
from quotascope.exporter.config import FileDiscoveryConfig
from quotascope.exporter.discovery import files
from quotascope.exporter.discovery.files import MAX_BYTES, MAX_TARGETS, FileFinder, FileTarget, parse
from quotascope.exporter.discovery.target import Address
from quotascope.exporter.errors import DiscoveryError


def finder(folder: Path, **match: str) -> FileFinder:
    return FileFinder(FileDiscoveryConfig(files=(str(folder / "*"),), match=match))


def write(path: Path, *targets: str, **labels: str) -> None:
    """Replace a file and advance its time of change, even within the clock's resolution."""
    old_time = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(json.dumps([{"targets": targets, "labels": labels}]))
    os.utime(path, ns=(old_time + 1, old_time + 1))


async def names(file_finder: FileFinder) -> tuple[list[str], str]:
    """Return the names of the targets, and the problem, empty if there is none."""
    result = await file_finder.find()
    return [target.name for target in result.targets], result.problem or ""


async def test_files_are_followed(tmp_path: Path) -> None:
    """New files, changes and removed files show with the next look."""
    looking = finder(tmp_path)
    assert await names(looking) == ([], f"{tmp_path}/*: there is no such file")
    write(tmp_path / "a.json", "a:1")
    write(tmp_path / "b.json", "b:1")
    assert await names(looking) == (["a:1", "b:1"], "")
    write(tmp_path / "a.json", "a:1", "a:2")
    assert await names(looking) == (["a:1", "a:2", "b:1"], "")
    (tmp_path / "b.json").unlink()
    assert await names(looking) == (["a:1", "a:2"], "")


async def test_labels_choose_groups_and_report_node_ids(tmp_path: Path) -> None:
    """Labels choose the groups of a file that several jobs use, and give ids to nodes whose page has none."""
    write(tmp_path / "a.json", "a:1", job="kafka", node_id="7")
    write(tmp_path / "b.json", "b:1", job="other")
    result = await finder(tmp_path, job="kafka").find()
    assert [(target.name, target.node_id) for target in result.targets] == [("a:1", 7)]


async def test_a_look_that_hangs_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that hangs in the file system stays the only one, and binds no more threads."""
    answers = threading.Event()

    def late(file: Path, most_bytes: int) -> bytes:
        answers.wait(20)
        return content_of(file, most_bytes)

    monkeypatch.setattr(files, "content_of", late)
    write(tmp_path / "a.json", "a:1")
    looking = finder(tmp_path)
    first_look = asyncio.create_task(looking.find())
    await asyncio.sleep(0)
    with pytest.raises(DiscoveryError, match="has not ended"):
        await looking.find()
    answers.set()
    assert [target.name for target in (await first_look).targets] == ["a:1"]


@pytest.mark.timeout(20)
async def test_a_pipe_holds_no_look_up(tmp_path: Path) -> None:
    """A pipe is reported and delays nothing, and its targets count once it is a file."""
    os.mkfifo(tmp_path / "a.json")
    write(tmp_path / "b.json", "b:1")
    looking = finder(tmp_path)
    target_names, problem = await names(looking)
    assert (target_names, problem) == (["b:1"], f"{tmp_path / 'a.json'}: cannot be read: it is not a regular file")
    (tmp_path / "a.json").unlink()
    write(tmp_path / "a.json", "a:1")
    assert await names(looking) == (["a:1", "b:1"], "")


async def test_file_that_breaks_keeps_its_targets(tmp_path: Path) -> None:
    """A file that is half written keeps its targets, and other files are read."""
    looking = finder(tmp_path)
    write(tmp_path / "a.json", "a:1")
    await looking.find()
    (tmp_path / "a.json").write_text('[{"targets": ["a:')
    write(tmp_path / "b.json", "b:1")
    target_names, problem = await names(looking)
    assert target_names == ["a:1", "b:1"]
    assert "a.json: cannot be parsed" in problem


async def test_files_without_a_target_are_a_problem(tmp_path: Path) -> None:
    """Files without a target are a problem, since an exporter that reads nothing would go unnoticed."""
    (tmp_path / "a.json").write_text("[]")
    assert await names(finder(tmp_path)) == ([], "the files list no target")
    write(tmp_path / "a.json", "a:1")
    assert await names(finder(tmp_path, job="kafka")) == ([], "the files list no target with the labels of match")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", None, "cannot be read: Is a directory"),
        ("a.json", " " * (MAX_BYTES + 1), "cannot be read: it is larger than 1 MiB"),
        ("a.json", "[\xff]", "is not UTF-8 text (byte 1)"),
        ("a.json", '{"targets": []}', "expected a list of groups with `targets`"),
        ("a.json", "[1]", "group 1: expected `targets` and perhaps `labels`, and nothing else"),
        ("a.json", '[{"targets": [], "url": "http://x"}]', "group 1: expected `targets` and perhaps `labels`"),
        ("a.json", '[{"targets": "a:1"}]', "group 1: targets are not a list of HOST:PORT"),
        ("a.json", '[{"targets": [1]}]', "group 1: targets are not a list"),
        ("a.json", '[{"targets": ["a:1"]}, {"labels": {}}]', "group 2: targets are not a list"),
        ("a.json", '[{"targets": [], "labels": {"a": 1}}]', "group 1: labels are not names with texts"),
        ("a.json", '[{"targets": ["a:1"], "labels": {"node_id": "x"}}]', "the label node_id is 'x', which is not"),
        ("a.json", '[{"targets": ["http://evil/x"]}]', "group 1: 'http://evil/x' has no valid port"),
        ("a.json", '[{"targets": ["a:1', "cannot be parsed: Unterminated string"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "9" * 5000, "cannot be parsed: Exceeds the limit"),
        ("a.json", json.dumps([{"targets": ["a:1"] * (MAX_TARGETS + 1)}]), f"more than {MAX_TARGETS} targets"),
        # aliases can stand for any amount of memory, tags for any object
        ("a.yml", "- &a {targets: []}\n- *a", "cannot be parsed: aliases are not allowed"),
        ("a.yml", "- !!python/name:os.system", "cannot be parsed: could not determine a constructor"),
        ("a.yml", "- targets: [\x00]", "cannot be parsed: unacceptable character"),
        ("a.yml", "a: ]", "cannot be parsed: while parsing"),
    ],
)
async def test_wrong_file_is_refused_as_a_whole(tmp_path: Path, name: str, text: str | None, problem: str) -> None:
    """A wrong file, or a folder with the name of a file, is refused with its name, the place and the reason."""
    path = tmp_path / name
    path.mkdir() if text is None else path.write_text(text, "latin-1")
    target_names, said = await names(finder(tmp_path))
    assert target_names == []
    assert said.startswith(f"{path}: {problem}")


TARGETS = [
    FileTarget(address=Address(host="a", port="1"), labels={"job": "kafka"}),
    FileTarget(address=Address(host="b", port="2"), labels={"job": "kafka"}),
    FileTarget(address=Address(host="c"), labels={}),
]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.json", '[{"targets": ["a:1", "b:2"], "labels": {"job": "kafka"}}, {"targets": ["c"]}]', TARGETS),
        ("x.yml", "- targets: [a:1, 'b:2']\n  labels: {job: kafka}\n- targets:\n  - c\n", TARGETS),
        ("x.yml", "", []),
        ("x.yml", "[]", []),
        ("x.yml", "- targets: []", []),
    ],
)
def test_json_and_yaml_say_the_same(name: str, text: str, expected: list[FileTarget]) -> None:
    """Both formats of Prometheus give each target its group's labels; an empty list or file is no mistake."""
    assert parse(name, text) == expected
