"""
The Sparks that tests share; each starts when the first test asks for it.

A process has one SparkContext at most, so `spark` is the only one in the tests' own process: never stop it, and never
start another one there. What needs its own, another version or another configuration runs in a process of its own
(`process.spark_process`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.spark import sessions
from tests.spark.versions import RUNNING, python_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.spark.process import SparkProcess
    from tests.spark.reporting import Watched


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A local session in this process, with two cores and four attempts at each task."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sessions.environment(folder).items():
            patch.setenv(name, value)
        for path in reversed(python_path(RUNNING)):  # its workers import tests, too
            patch.setenv("PYTHONPATH", path, prepend=":")
        session = sessions.start(folder)
        yield session
        sessions.end(session)


@pytest.fixture(scope="module")
def watched(spark: "SparkSession") -> Iterator["Watched"]:
    """The shared session, with a listener."""
    from tests.spark.reporting import Watched  # noqa: PLC0415 - brings Spark in

    from quotascope.spark_listener import attach  # noqa: PLC0415

    with attach(spark) as listener:
        yield Watched(spark, listener)


@pytest.fixture(scope="session")
def local_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkProcess"]:
    """
    Yield a driver in another process with the plugin, whose executor is in a third.

    Call jobs by `local_cluster.call(job, …)`. Kill the executor, not the driver.
    """
    from tests.spark.java_udf import jars  # noqa: PLC0415
    from tests.spark.process import spark_process  # noqa: PLC0415

    from quotascope.spark_listener.jvm import PLUGIN, write_jar  # noqa: PLC0415 - as the others, brings Spark in

    folder = tmp_path_factory.mktemp("cluster")
    write_jar(folder / "plugin.jar")
    conf = {
        "spark.jars": f"{jars(folder)},{folder / 'plugin.jar'}",
        "spark.plugins": PLUGIN,
        "spark.quotascope.jvm.intervalSeconds": "0.5",
    }
    with spark_process(folder, master=sessions.CLUSTER, conf=conf) as process:
        yield process
