import json
import os
from pathlib import Path

from tests.spark_listener.exposition.jobs import HOSTILE

from quotascope.spark_listener.exposition.discovery import DEAD_AFTER_SECONDS, DriverEntry


def entry(folder: Path, app_id: str = "app-1", name: str = "{app_id}.json", target: str = "driver-1:1") -> DriverEntry:
    made = DriverEntry(str(folder / "spark" / name), app="nightly", app_id=app_id)
    made.write(target)
    return made


def age(file: Path, seconds: float) -> None:
    then = file.stat().st_mtime - seconds
    os.utime(file, (then, then))


def test_the_file_is_as_prometheus_reads_it(tmp_path: Path) -> None:
    """One target, its application as a label, its name as one that is dropped, and nothing else in the folder."""
    entry(tmp_path, target="driver-1:4567")
    (file,) = (tmp_path / "spark").iterdir()
    assert file.name == "app-1.json"
    labels = {"app_id": "app-1", "__meta_quotascope_spark_app": "nightly"}
    assert json.loads(file.read_text()) == [{"targets": ["driver-1:4567"], "labels": labels}]


def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    """An id cannot lead out of the folder, and a name holds what it likes."""
    ours = DriverEntry(str(tmp_path / "{app_id}.json"), app=HOSTILE, app_id="../../etc/x\n")
    ours.write("driver-1:4567")
    (file,) = tmp_path.iterdir()
    assert file == ours.path
    assert json.loads(file.read_text())[0]["labels"]["app_id"] == "../../etc/x\n"


def test_it_is_removed(tmp_path: Path) -> None:
    """That it is gone already does not matter; that of another driver in the same file stays."""
    first = entry(tmp_path, "app-1", "driver.json")
    second = entry(tmp_path, "app-2", "driver.json", "driver-2:1")
    first.remove()
    assert "driver-2" in second.path.read_text()
    for _ in range(2):
        second.remove()
        assert not second.path.exists()


def test_a_beat_makes_it_young(tmp_path: Path) -> None:
    """And puts it back where it was taken away."""
    ours = entry(tmp_path)
    age(ours.path, 500)
    old = ours.path.stat().st_mtime
    ours.beat()
    assert ours.path.stat().st_mtime > old
    ours.path.unlink()
    ours.beat()
    assert "driver-1" in ours.path.read_text()


def test_entries_of_dead_drivers_are_removed_by_the_next(tmp_path: Path) -> None:
    """Only ours, when no one touched them for ten minutes, and only by a driver whose setting has `{app_id}`."""
    dead, alive = entry(tmp_path, "app-dead").path, entry(tmp_path, "app-alive").path
    age(dead, DEAD_AFTER_SECONDS + 60)
    age(alive, DEAD_AFTER_SECONDS - 60)
    of_others = {
        "node.json": '[{"targets": ["node:1"], "labels": {"app_id": "x"}}]',
        "odd.json": '{"__meta_quotascope_spark_app": 1}',
        "list.json": '["__meta_quotascope_spark_app"]',
        "broken.json": "{",
        "binary.json": "\x00",
        "deep.json": "[" * 100_000,
    }
    for name, text in of_others.items():
        dead.with_name(name).write_text(text)
    os.mkfifo(dead.with_name("pipe.json"))  # who opens it waits for a writer
    for name in (*of_others, "pipe.json"):
        age(dead.with_name(name), DEAD_AFTER_SECONDS + 60)
    entry(tmp_path, "app-one", "driver.json")
    assert dead.exists()
    entry(tmp_path, "app-new")
    left = {file.name for file in dead.parent.iterdir()}
    assert left == {"app-alive.json", "app-new.json", "driver.json", "pipe.json", *of_others}
