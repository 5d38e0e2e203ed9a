import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quotascope.spark_listener import attach, enable
from quotascope.spark_listener.driver import Driver
from quotascope.spark_listener.errors import brief


class _Conf:
    """Configuration of PySpark 3.5."""

    def __init__(self, **properties: str) -> None:
        self._properties = properties
        self.asked: list[str] = []

    def get(self, key: str, default: str | None) -> str | None:
        self.asked.append(key)
        return self._properties.get(key.removeprefix("spark.").replace(".", "_"), default)


class _NewerConf(_Conf):
    """Configuration of PySpark 4, which can be asked for everything at once."""

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        self.asked.append("all")
        return {f"spark.{name.replace('_', '.')}": value for name, value in self._properties.items()}


class _Connect:
    """A session of Spark Connect, as far as a driver looks at it."""

    def __init__(self, session_id: str, conf: type[_Conf] = _Conf, **properties: str) -> None:
        self.session_id = session_id
        self.client = object()
        self.conf = conf(**properties)
        self.is_stopped = False

    @property
    def sparkContext(self) -> object:  # noqa: N802 - PySpark's name
        raise RuntimeError("not supported in Spark Connect")


@pytest.mark.parametrize("spark", [None, "spark", object(), SimpleNamespace(sparkContext=object())])
def test_what_is_no_session_is_a_problem_and_no_error(spark: object) -> None:
    """An object that is no session gives a listener that watches nothing, with a problem and no error."""
    listener = attach(spark)
    assert listener.source == "none"
    assert [problem.part for problem in listener.problems] == ["attach"]
    listener.close()
    assert enable(object()) is None


@pytest.mark.parametrize(
    ("session_id", "properties", "app_id", "app_name", "watched_id"),
    [
        ("a", {"app_id": "app-1", "app_name": "orders"}, "app-1", "orders", "app-1-a"),
        ("b", {"app_id": "app-1"}, "app-1", "app-1", "app-1-b"),
        ("c", {}, "", "", "c"),
    ],
)
def test_session_of_connect_is_known_by_its_id(
    session_id: str, properties: dict[str, Any], app_id: str, app_name: str, watched_id: str
) -> None:
    """
    A session of Connect, without a SparkContext, is known by its id.

    Sessions of one server share the id of its application, and its name where it has no other.
    """
    session = _Connect(session_id, **properties)
    driver = Driver(session)
    identity = (driver.context, driver.app_id, driver.app_name, driver.watched_id, driver.key)
    assert identity == (None, app_id, app_name, watched_id, session_id)
    assert driver.session is session


@pytest.mark.parametrize("conf", [_Conf, _NewerConf])
def test_only_what_is_needed_is_kept(conf: type[_Conf]) -> None:
    """Properties may hold secrets, and the address of a server of Connect is not this driver's."""
    session = _Connect("one", conf, quotascope_app="orders", ssl_keyPassword="secret", driver_host="server-1")
    assert Driver(session).properties == {"spark.quotascope.app": "orders"}


@pytest.mark.parametrize(
    ("trigger", "seconds"),
    [
        ("RealTimeTrigger(300000)", 300),
        ("ProcessingTimeTrigger(1500)", 1.5),
        ("ContinuousTrigger(1000)", 1),
        ("ProcessingTimeTrigger(0)", None),
        ("AvailableNowTrigger", None),
    ],
)
def test_trigger_of_a_query(trigger: str, seconds: float | None) -> None:
    """The trigger is read from its text in the JVM, by the id of the query; a query that is gone has none."""

    def java(text: str) -> SimpleNamespace:
        return SimpleNamespace(toString=lambda: text)

    query = SimpleNamespace(id=lambda: java("id-1"), trigger=lambda: java(trigger))
    state = SimpleNamespace(activeStreamingQueries=lambda: {"any": query})
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=object()), _jsparkSession=SimpleNamespace(sharedState=lambda: state)
    )
    assert Driver(session).trigger_seconds("id-1") == seconds
    assert Driver(session).trigger_seconds("id-2") is None
    assert Driver(_Connect("one")).trigger_seconds("id-1") is None


def test_properties_are_read_once() -> None:
    """The properties are read in a single request where PySpark has one."""
    newer, older = (_Connect("one", conf, app_id="app-1", app_name="orders") for conf in (_NewerConf, _Conf))
    for session in (newer, older):
        driver = Driver(session)
        _ = driver.properties, driver.app_id, driver.app_name, driver.watched_id
    assert newer.conf.asked == ["all"]
    assert len(older.conf.asked) == len(set(older.conf.asked))


def test_session_that_is_not_enabled_is_asked_one_thing() -> None:
    """Only one question is asked, however often a job asks for its session."""
    session = _Connect("one", quotascope_enabled="false")
    assert (enable(session), enable(session)) == (None, None)
    assert session.conf.asked == ["spark.quotascope.enabled"] * 2


@pytest.mark.slow
def test_session_that_is_watched_is_asked_nothing_more() -> None:
    """A watched session keeps its listener until it is closed, even where no source of events works."""
    session = _Connect("watched", quotascope_enabled="true")
    listener = enable(session)
    assert listener is not None
    asked_before = len(session.conf.asked)
    assert enable(session) is listener
    assert attach(session) is listener
    assert (listener.source, len(session.conf.asked)) == ("none", asked_before)
    assert listener.url is not None
    listener.end()
    again = enable(session)
    assert again is not None
    assert again is not listener
    again.end()


def test_page_that_cannot_be_served_is_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    """A listener whose page cannot be served has no URL, and reports the reason once."""
    with attach(_Connect("no page"), http_bind_address="no.such.host.invalid") as listener:
        (problem,) = (candidate.text for candidate in listener.problems if candidate.part == "reporting")
    assert listener.url is None
    assert problem.startswith("there is no page for Prometheus: ")
    assert len([line for line in caplog.messages if problem in line]) == 1


class _FromJava(Exception):
    def __init__(self, java: object) -> None:
        super().__init__("An error occurred while calling o1.x.\n\tat a.b.c")
        self.java_exception = java


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            _FromJava(SimpleNamespace(toString=lambda: "java.lang.NoSuchMethodException: x\n  y")),
            "java.lang.NoSuchMethodException: x y",
        ),
        pytest.param(_FromJava(object()), "AttributeError", id="a JVM that cannot be asked"),
        (ValueError("a\nb\t c"), "a b c"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 10_000), "x" * 299 + "…"),
    ]
)  # fmt: skip
def test_errors_are_reported_in_one_line(error: Exception, text: str) -> None:
    """An error is one line of bounded length, without Java's stack; an error without a text is reported by its kind."""
    assert brief(error) == text


SCRIPT = """\
from pyspark import SparkContext
from pyspark.sql import SparkSession

SparkSession.Builder.create = lambda _: True
import quotascope.spark_listener.enabling as enabling
import quotascope.spark_listener.hook

seen = []
enabling._attached = lambda spark: seen.append(type(spark).__name__)
enabling.enable()


class Made(SparkContext):
    pass


SparkContext._do_init = lambda *_, **__: None
SparkContext._ensure_initialized = classmethod(lambda *_, **__: None)
made = Made()
SparkSession.builder.create()
print(seen, SparkContext.__init__.__name__, SparkSession.Builder.getOrCreate.__name__)
"""
RUNNER = "import sys; print(sys.argv[1:], __name__, sys.path[0] == {folder!r}); raise SystemExit(3)"


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_hook_sees_every_context_once() -> None:
    """
    Each context and each session of Connect is seen once, however often the hook is imported.

    Wrapped functions keep their names.
    """
    ran = _run("-c", SCRIPT)
    assert ran.stdout.strip() == "['Made', 'bool'] __init__ getOrCreate", ran.stderr


def test_runner_gives_a_script_what_python_would(tmp_path: Path) -> None:
    """
    The script gets its arguments, its name, and its own folder to import from.

    The runner ends with the script's exit code.
    """
    script = tmp_path / "job.py"
    script.write_text(RUNNER.format(folder=str(tmp_path)))
    ran = _run("-m", "quotascope.spark_listener.run", str(script), "--flag", "a b")
    assert (ran.returncode, ran.stdout.strip()) == (3, "['--flag', 'a b'] __main__ True"), ran.stderr


def test_runner_without_a_script_says_how_it_is_used() -> None:
    """The usage comes on standard error, with an exit code that is not 0."""
    ran = _run("-m", "quotascope.spark_listener.run")
    assert ran.returncode == 1
    assert ran.stderr.startswith("usage: spark-submit --conf")
