"""The plugin's jar: how it is built, and what is said where it cannot be."""

import zipfile
from pathlib import Path

import pytest
from tests.cluster.provision import libs

from quotascope.spark_listener.jvm import JarUnavailable, building, plugin, write_jar

pytestmark = pytest.mark.java


def test_jar_is_the_same_each_time(tmp_path: Path) -> None:
    """It holds our classes only, for Java 8, and none of those that stand for Spark's and Kafka's."""
    first, second = tmp_path / "first.jar", tmp_path / "second.jar"
    write_jar(first)
    write_jar(second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as built:
        classes = [name for name in built.namelist() if name.endswith(".class")]
        assert "io/quotascope/spark/ThrottlePlugin.class" in classes
        assert {str(Path(name).parent) for name in classes} == {"io/quotascope/spark"}
        assert {built.read(name)[6:8] for name in classes} == {b"\0\x34"}


def test_stubs_are_as_the_real_classes(tmp_path: Path) -> None:
    """Compiled against Spark's and Kafka's own classes, every class has the same bytes."""
    import pyspark  # noqa: PLC0415 - for its jars

    spark = Path(pyspark.__file__).parent / "jars"
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    building.compile_to(
        ours,
        "-sourcepath",
        str(Path(building.__file__).parent / "stubs"),
        "-implicit:none",
    )
    building.compile_to(theirs, "-proc:none", "-cp", f"{libs()}/*:{spark}/*")
    assert _classes(ours) == _classes(theirs)


def _classes(folder: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in folder.rglob("*.class")}
    assert found
    return found


def test_jar_of_the_wheel_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the wheel carries is copied, without a compiler."""
    (tmp_path / building.JAR).write_bytes(b"carried")
    monkeypatch.setattr(plugin, "__file__", str(tmp_path / "jar.py"))
    monkeypatch.setenv("PATH", "")
    write_jar(tmp_path / "copy.jar")
    assert (tmp_path / "copy.jar").read_bytes() == b"carried"


def test_missing_compiler_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the installation nor to be built."""
    monkeypatch.setenv("PATH", "")
    assert not building.has_compiler()
    with pytest.raises(JarUnavailable, match="install a JDK"):
        write_jar(tmp_path / "plugin.jar")


def test_missing_folder_is_told(tmp_path: Path) -> None:
    """The target has to be a file in a folder that is there."""
    with pytest.raises(JarUnavailable, match=r"is not written to .*no/plugin\.jar"):
        write_jar(tmp_path / "no" / "plugin.jar")


def test_refusal_of_the_compiler_is_told(tmp_path: Path) -> None:
    """Its own words say what it misses."""
    with pytest.raises(building.BuildFailed, match=r"package org\.apache"):
        building.compile_to(tmp_path)
