"""What Spark shows of our properties."""

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from quotascope.spark_listener.settings import KEYS, PREFIX

pytestmark = pytest.mark.real


def test_spark_hides_the_secret_headers(spark: SparkSession) -> None:
    """By its default rule, which looks at names; that is why the property is called so."""
    conf = SparkConf(loadDefaults=False, _jvm=spark._jvm)
    secret, endpoint = f"{PREFIX}otlp.secretHeaders", f"{PREFIX}otlp.endpoint"
    assert {secret, endpoint} <= {*KEYS}
    conf.set(secret, "authorization=Bearer%20geheim")
    conf.set(endpoint, "http://collector:4318")
    shown = conf.toDebugString()
    assert f"{secret}=*********" in shown
    assert "geheim" not in shown
    assert "collector" in shown
