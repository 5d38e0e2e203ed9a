"""What Spark shows of our properties."""

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from quotascope.spark_listener.exposition import keys

pytestmark = pytest.mark.real


def test_spark_hides_the_secret_headers(spark: SparkSession) -> None:
    """By its default rule, which looks at names; that is why the property is called so."""
    conf = SparkConf(loadDefaults=False, _jvm=spark._jvm)
    conf.set(keys.OTLP_SECRET_HEADERS, "authorization=Bearer%20geheim")
    conf.set(keys.OTLP_ENDPOINT, "http://collector:4318")
    shown = conf.toDebugString()
    assert f"{keys.OTLP_SECRET_HEADERS}=*********" in shown
    assert "geheim" not in shown
    assert "collector" in shown
