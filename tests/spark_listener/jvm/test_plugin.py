"""The plugin: its answers, and the jar that this installation carries."""

import json
import zipfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from tools.build_spark_jar import build

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.jvm import JAR, PLUGIN, JarUnavailable, PluginTotals, PluginUnreadable, plugin, write_jar
from quotascope.spark_listener.jvm.plugin import read


class Session:
    """A session whose JVM has the plugin's class, with the attributes that the plugin's counts use."""

    def __init__(self, plugins: str, master: str = "local") -> None:
        self.asked: list[str] = []

        def totals(application: str) -> str:
            self.asked.append(application)
            return "[]"

        self.sparkContext = SimpleNamespace(
            applicationId="local-1",
            master=master,
            _jsc=object(),
            getConf=lambda: {"spark.plugins": plugins} if plugins else {},
            _jvm=SimpleNamespace(**{PLUGIN: SimpleNamespace(totals=totals)}),
        )


def test_counts_are_read_by_query_and_client() -> None:
    """Names may hold anything, halves of characters are replaced; an application without the plugin has no counts."""
    rows = [
        [["", "al\u2713ce", 'a"\n\\b', "write"], [1_500, 2, 1_000, 0]],
        [["42", "", "half \ud800", "read"], [0, 0, 0, 0]],
    ]
    assert read(json.dumps(rows)) == [
        ("", ClientTotals(Client("al\u2713ce", 'a"\n\\b', "write"), 1_500, 2, 1_000)),
        ("42", ClientTotals(Client("", "half \ufffd", "read"))),
    ]
    assert read("") == []


@pytest.mark.parametrize(
    "answer",
    [
        "what",
        "{}x",
        "[1]",
        '[[["", "", "", "peek"], [0, 0, 0, 0]]]',
        '[[["", "", "read"], [0, 0, 0, 0]]]',
        '[[["", "", "", "read"], [0]]]',
        '[[["", "", "", "read"], ["many", 0, 0, 0]]]',
    ],
)
def test_other_answer_is_refused(answer: str) -> None:
    """An answer of another version is refused, with advice to take the jar of this one."""
    with pytest.raises(PluginUnreadable, match="take its jar from this version"):
        read(answer)


@pytest.mark.parametrize("plugins", [PLUGIN, f"other.Plugin, {PLUGIN}"])
def test_plugin_is_asked_about_its_application(plugins: str) -> None:
    """The plugin is asked about one application, of many at once or one after the other in a JVM."""
    session = Session(plugins)
    plugin = PluginTotals.of(session)
    assert plugin is not None
    assert plugin.totals() == []
    assert session.asked == ["local-1"]


@pytest.mark.parametrize(
    ("master", "interval", "waits"),
    [
        ("yarn", 1.0, [1.5]),
        ("local-cluster[1,2,1024]", 0.5, [1.0]),
        ("spark://a", 60.0, []),
        ("local[2,4]", 1.0, []),
    ],
)
def test_executors_may_report_before_the_last_count(master: str, interval: float, waits: list[float]) -> None:
    """
    A listener that is closed before its application waits for an interval.

    There is none to wait for where the driver has all tasks.
    """
    session = Session(PLUGIN, master)
    plugin = PluginTotals.of(session)
    assert plugin is not None
    waited: list[float] = []
    plugin.await_executors(interval, waited.append)
    assert waited == waits
    session.sparkContext._jsc = None  # it was stopped
    plugin.await_executors(interval, waited.append)
    assert waited == waits


@pytest.mark.parametrize("session", [Session(""), Session("other.Plugin"), Session(f"{PLUGIN}s"), object()])
def test_session_without_the_plugin_has_none(session: object) -> None:
    """
    The plugin counts by its own name only; a session of Spark Connect has no SparkContext.

    Asking raises, and nothing comes of it.
    """
    assert PluginTotals.of(session) is None


@pytest.mark.java
def test_shipped_jar_is_that_of_the_java() -> None:
    """The shipped jar has the bytes of a build from scratch; else run `make spark-jar`."""
    built = BytesIO()
    build(built)
    assert built.getvalue() == JAR.read_bytes()


def test_jar_holds_our_classes_for_java_17(tmp_path: Path) -> None:
    """The jar has none of Spark's or Kafka's classes."""
    write_jar(tmp_path / "copy.jar")
    with zipfile.ZipFile(tmp_path / "copy.jar") as jar:
        classes = [name for name in jar.namelist() if name.endswith(".class")]
        assert {str(Path(name).parent) for name in classes} == {"io/quotascope/spark"}
        assert {jar.read(name)[6:8] for name in classes} == {b"\0\x3d"}


def test_jar_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target has to be a file in a folder that exists; an installation may have lost its jar."""
    with pytest.raises(JarUnavailable, match=r"is not written to .*no/plugin\.jar"):
        write_jar(tmp_path / "no" / "plugin.jar")
    monkeypatch.setattr(plugin, "JAR", tmp_path / "lost.jar")
    with pytest.raises(JarUnavailable, match="No such file"):
        write_jar(tmp_path / "plugin.jar")
