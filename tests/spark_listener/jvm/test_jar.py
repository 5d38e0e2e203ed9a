"""The jar that this installation carries."""

import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tools.build_spark_jar import build

from quotascope.spark_listener.jvm import JAR, JarUnavailable, plugin, write_jar


@pytest.mark.java
def test_shipped_jar_is_that_of_the_java() -> None:
    """A build from scratch gives the same bytes; else run `make spark-jar`."""
    built = BytesIO()
    build(built)
    assert built.getvalue() == JAR.read_bytes()


def test_jar_holds_our_classes_for_java_17(tmp_path: Path) -> None:
    """And none of Spark's or Kafka's."""
    write_jar(tmp_path / "copy.jar")
    with zipfile.ZipFile(tmp_path / "copy.jar") as jar:
        classes = [name for name in jar.namelist() if name.endswith(".class")]
        assert {str(Path(name).parent) for name in classes} == {"io/quotascope/spark"}
        assert {jar.read(name)[6:8] for name in classes} == {b"\0\x3d"}


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    """The target has to be a file in a folder that exists."""
    with pytest.raises(JarUnavailable, match=r"is not written to .*no/plugin\.jar"):
        write_jar(tmp_path / "no" / "plugin.jar")


def test_missing_jar_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an installation that lost it."""
    monkeypatch.setattr(plugin, "JAR", tmp_path / "lost.jar")
    with pytest.raises(JarUnavailable, match="No such file"):
        write_jar(tmp_path / "plugin.jar")
