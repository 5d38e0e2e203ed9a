"""Names of the sides of comparisons, in tables and in the JSON of results."""

from typing import Final

READ: Final = "Spark reads the text"
LOOP: Final = "orjson in a loop"
SHUFFLE: Final = "Spark reads and shuffles"
NOTEBOOK: Final = "NumPy, by seconds"
ON_SPARK: Final = "quotascope on Spark"
FRAME: Final = "quotascope on a frame of Spark's, 1 candidate"
ALONE: Final = "quotascope alone"
DUCKDB: Final = "DuckDB, 16 fields to one Parquet"
POLARS: Final = "Polars, the same"
PARSE: Final = "quotascope parses"
WHOLE: Final = "quotascope alone, with history and sums"
ON_SPARK_TO_ALONE: Final = "cpu_on_spark_to_alone"
"""Fact: CPU time of a line on Spark, of what one process takes (goal 1.3)."""
HISTORY: Final = "history of the requests, on Spark"
MANY: Final = 20


def candidates(name: str, number: int) -> str:
    """Name a side by how many candidates it replays."""
    return f"{name}, {number} candidate{'s' if number > 1 else ''}"
