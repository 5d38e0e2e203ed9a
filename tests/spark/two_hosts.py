"""A cluster of two hosts on one machine: Spark speculates only where a task can run on another host."""

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.spark import sessions
from tests.spark.losses import speculated
from tests.spark.settling import mark
from tests.spark.table import counted

HOSTS = ("127.0.0.1", "127.0.0.2")
CORES, MEMORY = 2, 1024
EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.cores.max": "4",
    "spark.executor.cores": "2",
    "spark.executor.memory": "1g",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}


def speculating(spark: SparkSession, conf: dict[str, str]) -> SparkSession:
    """Stop the session, and start another one whose executors are on two hosts."""
    spark.stop()
    folder = Path(mkdtemp(prefix="hosts-"))
    url = _cluster(SparkContext._jvm, folder)
    return sessions.start(folder, url, {**EAGER, **conf})


def recorded(spark: SparkSession, conf: dict[str, str]) -> None:
    """Run the application's only job, marked for the recorder."""
    other = speculating(spark, conf)
    speculated(other)
    mark(other)
    other.stop()


def watched(spark: SparkSession) -> dict[str, Any]:
    """Return the counts of a listener that watches the session's only job."""
    other = speculating(spark, {})
    counts = counted(other, speculated)
    other.stop()
    return counts


def _cluster(jvm: Any, folder: Path) -> str:
    """A master and two workers in the driver's JVM; their executors have their own. The master's URL."""
    none = jvm.scala.Option.apply(None)
    conf = jvm.org.apache.spark.SparkConf().set("spark.master.rest.enabled", "false")
    deploy = jvm.org.apache.spark.deploy
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, conf)
    url = f"spark://{HOSTS[0]}:{master._1().address().port()}"
    masters = SparkContext._gateway.new_array(jvm.String, 1)  # type: ignore[union-attr]
    masters[0] = url
    for number, host in enumerate(HOSTS):
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, CORES, MEMORY, masters, str(folder / "work"), jvm.scala.Option.apply(number), conf, none
        )
    return url
