from types import SimpleNamespace

import pytest

from quotascope.spark_listener import attach, enable
from quotascope.spark_listener.driver import Driver


class _Conf:
    def __init__(self, **properties: str) -> None:
        self._properties = properties

    def get(self, key: str, default: str | None) -> str | None:
        return self._properties.get(
            key.removeprefix("spark.").replace(".", "_"), default
        )


class _Connect:
    """A session of Spark Connect, as far as a driver looks at it."""

    def __init__(self, session_id: str, **properties: str) -> None:
        self.session_id = session_id
        self.client = object()
        self.conf = _Conf(**properties)

    @property
    def sparkContext(self) -> object:  # noqa: N802 - PySpark's name
        raise RuntimeError("not supported in Spark Connect")


@pytest.mark.parametrize(
    "spark", [None, "spark", object(), SimpleNamespace(sparkContext=object())]
)
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


def test_only_what_is_needed_is_read() -> None:
    """Properties may hold secrets."""
    session = _Connect("one", quotascope_app="orders", ssl_keyPassword="secret")
    assert Driver(session).properties == {"spark.quotascope.app": "orders"}


def test_address_of_a_server_of_connect_is_not_ours() -> None:
    """A page cannot be opened there."""
    assert Driver(_Connect("one", driver_host="server-1")).properties == {}
