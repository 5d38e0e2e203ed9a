"""A history that Spark keeps is the one that a single process keeps."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.pipeline import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real


def test_spark_keeps_the_same_history(spark: "SparkSession", tmp_path: Path) -> None:
    """Every request is taken over once; tests/spark/delta has the Spark that Delta Lake is released for."""
    kept.is_kept(tmp_path, kept.job(spark, str(tmp_path)))
