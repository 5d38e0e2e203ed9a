"""Reading what the plugin answers."""

import json

import pytest

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.jvm import PLUGIN, PluginTotals, PluginUnreadable
from quotascope.spark_listener.jvm.plugin import read


class Plugin:
    """Stands for the class of the JVM."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def totals(self, application: str) -> str:
        """The answer."""
        self.asked.append(application)
        return self.answer


class Context:
    """Stands for a SparkContext."""

    def __init__(self, plugins: str) -> None:
        self._plugins = plugins
        self.plugin = Plugin("[]")
        self._jvm = type("Jvm", (), {PLUGIN: self.plugin})()
        self.applicationId = "local-1"

    def getConf(self) -> dict[str, str]:  # noqa: N802 - as Spark has it
        """What was configured."""
        return {"spark.plugins": self._plugins} if self._plugins else {}


class Session:
    """Stands for a session."""

    def __init__(self, plugins: str) -> None:
        self.sparkContext = Context(plugins)


def test_counts_are_read_by_query_and_client() -> None:
    """Names may hold anything, and the halves of characters are replaced."""
    answer = json.dumps(
        [
            [["", "al\u2713ce", 'a"\n\\b', "write"], [1_500, 2, 1_000, 0]],
            [["42", "", "half \ud800", "read"], [0, 0, 0, 0]],
        ]
    )
    assert read(answer) == [
        ("", ClientTotals(Client("al\u2713ce", 'a"\n\\b', "write"), 1_500, 2, 1_000)),
        ("42", ClientTotals(Client("", "half \ufffd", "read"))),
    ]


def test_no_answer_no_counts() -> None:
    """An application without the plugin has none."""
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
    """It may be one of many, and the driver's JVM one of many applications, one after the other."""
    session = Session(plugins)
    plugin = PluginTotals.of(session)
    assert plugin is not None
    assert plugin.totals() == []
    assert session.sparkContext.plugin.asked == ["local-1"]


@pytest.mark.parametrize("plugins", ["", "other.Plugin", f"{PLUGIN}s"])
def test_session_without_the_plugin_has_none(plugins: str) -> None:
    """Only its own name counts."""
    assert PluginTotals.of(Session(plugins)) is None


def test_session_without_a_jvm_has_none() -> None:
    """Spark Connect has no SparkContext: asking raises, and nothing comes of it."""
    assert PluginTotals.of(object()) is None
