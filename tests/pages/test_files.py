"""Files are written completely or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quotascope.alerts import Site
from quotascope.alerts.errors import CannotWrite
from quotascope.alerts.files import rule_files, write
from quotascope.cli.main import app
from quotascope.pages.files import check, put, put_all

QUOTASCOPE = Path(sys.executable).with_name("quotascope")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    """A file keeps its mode, a new one gets what the umask leaves, and a link still leads to the file."""
    file, new = tmp_path / "file", tmp_path / "new"
    file.write_text("before")
    file.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    old = os.umask(0o077)
    try:
        put_all({link: "after", new: b"\x00"})
    finally:
        os.umask(old)
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o640)
    assert (new.read_bytes(), new.stat().st_mode & 0o777) == (b"\x00", 0o600)
    assert names(tmp_path) == {"file", "new", "link"}


def test_a_link_to_nothing_gets_its_target(tmp_path: Path) -> None:
    """The target of a dangling link is created, as by a shell's redirection."""
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    put(tmp_path / "link", "text")
    assert (tmp_path / "there" / "file").read_text() == "text"


def test_one_that_fails_leaves_all_as_they_were(tmp_path: Path) -> None:
    """The first file keeps its content if the last one cannot be written."""
    good, bad = tmp_path / "first", tmp_path / "no" / "last"
    good.write_text("before")
    with pytest.raises(FileNotFoundError) as failed:
        put_all({good: "after", bad: "after"})
    assert failed.value.filename == str(bad)
    assert good.read_text() == "before"
    assert names(tmp_path) == {"first"}


def test_a_name_that_cannot_be_taken_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names that file, and no hidden file is left."""

    def refuse(part: Path, target: Path) -> Path:
        raise OSError(16, os.strerror(16), str(part), 0, str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="busy") as failed:
        put_all({tmp_path / "first": "", tmp_path / "last": ""})
    assert failed.value.filename == str(tmp_path / "first")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("wrong", ["folder", "loop", "file/inside"])
def test_what_cannot_be_written_is_named(tmp_path: Path, wrong: str) -> None:
    """`check` and `put` name the file before they write."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    for attempt in (check, lambda file: put(file, "")):
        with pytest.raises(OSError) as failed:
            attempt(tmp_path / wrong)
        assert failed.value.filename == str(tmp_path / wrong)
        assert failed.value.strerror
    assert names(tmp_path) == {"folder", "loop", "file"}


def test_check_changes_nothing(tmp_path: Path) -> None:
    """An existing file keeps its text and its inode; a missing one is not created."""
    file = tmp_path / "there"
    file.write_text("kept")
    inode = file.stat().st_ino
    check(file)
    check(tmp_path / "new")
    assert (file.read_text(), file.stat().st_ino) == ("kept", inode)
    assert names(tmp_path) == {"there"}


def test_read_only_files_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only file is kept, even in a folder whose files may be replaced, and even from `root`."""
    file = tmp_path / "file"
    file.write_text("kept")
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (file, os.W_OK))
    with pytest.raises(PermissionError):
        put(file, "new")
    assert file.read_text() == "kept"


def run(*arguments: str, limit: Callable[[], None] | None = None, stdout: int = -1) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [QUOTASCOPE, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, preexec_fn=limit
    )


def _small_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))


@pytest.mark.parametrize(
    "command",
    [
        ("alerts", "write", "{}"),
        ("dashboards", "write", "{}"),
        ("rules", "jmx-exporter", "--output", "{}/quotascope.yml"),
        ("spark", "py-files", "{}/quotascope.zip"),
    ],
    ids=" ".join,
)
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, command: tuple[str, ...]) -> None:
    """No file is half written, none is new beside old ones, and the message names a file."""
    arguments = [word.format(tmp_path) for word in command]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    contents = {file: f"before {file.name}" for file in tmp_path.rglob("*") if file.is_file()}
    for file, text in contents.items():
        file.write_text(text)
    failed = run(*arguments, limit=_small_disk)
    assert failed.returncode == 1
    assert "File too large" in failed.stderr
    assert str(tmp_path) in failed.stderr
    assert "Traceback" not in failed.stderr
    contents_after = {p: p.read_bytes().decode(errors="replace") for p in tmp_path.rglob("*") if p.is_file()}
    assert contents_after == contents


def test_half_of_the_rules_is_never_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file of rules is not replaced if there is no space for the second."""
    for name in rule_files(Site()):
        (tmp_path / name).write_text("groups: []")
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, os.strerror(28))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match=r"quotascope-alerts\.yaml.* No space left"):
        write(tmp_path, Site())
    assert {path.read_text() for path in tmp_path.iterdir()} == {"groups: []"}


def test_standard_output_and_pipes_are_written_to(tmp_path: Path) -> None:
    """`/dev/stdout` is written to, be it a pipe or a file with content, and so is a named pipe."""
    piped = run("rules", "jmx-exporter", "--output", "/dev/stdout")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.startswith("#")
    assert piped.stdout.endswith("/dev/stdout\n")
    file = tmp_path / "appended"
    with file.open("a") as opened:
        opened.write("first\n")
        opened.flush()
        done = run("rules", "jmx-exporter", "--output", "/dev/stdout", stdout=opened.fileno())
    assert done.returncode == 0, done.stderr
    assert file.read_text() == f"first\n{piped.stdout}"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check(pipe)
    put(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
