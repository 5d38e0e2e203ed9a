from types import SimpleNamespace

import pytest

from quotascope.spark_listener import attach, enable
from quotascope.spark_listener.driver import Driver


class _Conf:
    """Of PySpark 3.5."""

    def __init__(self, **properties: str) -> None:
        self._properties = properties
        self.asked: list[str] = []

    def get(self, key: str, default: str | None) -> str | None:
        self.asked.append(key)
        return self._properties.get(key.removeprefix("spark.").replace(".", "_"), default)


class _NewerConf(_Conf):
    """Of PySpark 4, which can be asked for everything at once."""

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
    """A listener comes back all the same: it watches nothing and can be closed."""
    listener = attach(spark)
    assert listener.source == "none"
    assert [each.part for each in listener.problems] == ["attach"]
    listener.close()


def test_enabling_what_is_no_session_does_nothing() -> None:
    """The hook does not end a job either."""
    assert enable(object()) is None


def test_session_of_connect_is_known_by_its_id() -> None:
    """It has no SparkContext; what it says of its application is in its configuration."""
    driver = Driver(_Connect("one", app_id="app-1", app_name="orders"))
    assert (driver.context, driver.app_id, driver.app_name) == (None, "app-1", "orders")
    assert driver.key == "one"
    assert driver.session.session_id == "one"


def test_application_without_a_name_is_called_by_its_id() -> None:
    """The label is never empty without need."""
    assert Driver(_Connect("one", app_id="app-1")).app_name == "app-1"


def test_sessions_of_one_server_are_distinguished() -> None:
    """They share the id of its application, and each has files and a page of its own."""
    first, second = (Driver(_Connect(each, app_id="app-1")) for each in ("a", "b"))
    assert (first.app_id, second.app_id) == ("app-1", "app-1")
    assert (first.watched_id, second.watched_id) == ("app-1-a", "app-1-b")
    assert Driver(_Connect("a")).watched_id == "a"


@pytest.mark.parametrize("conf", [_Conf, _NewerConf])
def test_only_what_is_needed_is_kept(conf: type[_Conf]) -> None:
    """Properties may hold secrets."""
    session = _Connect("one", conf, quotascope_app="orders", ssl_keyPassword="secret")
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
    """From its text in the JVM, by the id of the query; a query that is gone has none."""

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
    """In a single request where PySpark has one."""
    session = _Connect("one", _NewerConf, app_id="app-1", app_name="orders")
    driver = Driver(session)
    _ = driver.properties, driver.app_id, driver.app_name, driver.watched_id
    assert session.conf.asked == ["all"]
    older = _Connect("one", app_id="app-1", app_name="orders")
    driver = Driver(older)
    _ = driver.properties, driver.app_id, driver.app_name, driver.watched_id
    assert len(older.conf.asked) == len(set(older.conf.asked))


def test_session_that_is_not_enabled_is_asked_one_thing() -> None:
    """However often a job asks for its session."""
    session = _Connect("one", quotascope_enabled="false")
    assert (enable(session), enable(session)) == (None, None)
    assert session.conf.asked == ["spark.quotascope.enabled"] * 2


@pytest.mark.slow
def test_session_that_is_watched_is_asked_nothing_more() -> None:
    """The listener is the same, as long as it is not closed, even where no source of events works."""
    session = _Connect("watched", quotascope_enabled="true")
    first = enable(session)
    assert first is not None
    asked = len(session.conf.asked)
    assert enable(session) is first
    assert attach(session) is first
    assert (first.source, len(session.conf.asked)) == ("none", asked)
    assert first.url is not None
    first.end()
    again = enable(session)
    assert again is not None
    assert again is not first
    again.end()


def test_address_of_a_server_of_connect_is_not_ours() -> None:
    """A page cannot be opened there."""
    assert Driver(_Connect("one", driver_host="server-1")).properties == {}
