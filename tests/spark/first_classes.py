"""
Loads the classes of a driver and keeps them: `python -m tests.spark.first_classes FOLDER TARGET`.

Its JVM works in FOLDER, and writes the archive into TARGET when it ends.
"""

import sys
from pathlib import Path

from tests import class_data
from tests.spark import sessions

_LONGEST_S = 600
"""The archive has 30,000 classes."""


def main(folder: Path, target: Path) -> None:
    """Run the work of most jobs of the tests: rows that are grouped, written and read, and a task in Python."""
    options = (sessions.QUIET["spark.driver.extraJavaOptions"], *class_data.making(target))
    session = sessions.start(folder, conf={"spark.driver.extraJavaOptions": " ".join(options)})
    numbers = session.range(1_000).selectExpr("id", "id % 7 as rest", "cast(id as string) as text")
    numbers.write.parquet(str(folder / "numbers"))
    grouped = session.read.parquet(str(folder / "numbers")).groupBy("rest").count()
    assert grouped.count() == 7
    stream = session.readStream.schema(numbers.schema).parquet(str(folder / "numbers")).groupBy("rest").count()
    query = stream.writeStream.format("memory").queryName("counted").outputMode("complete").trigger(availableNow=True)
    query.start().awaitTermination()
    assert session.sparkContext.parallelize(range(4)).map(lambda number: number + 1).sum() == 10
    sessions.end(session, _LONGEST_S)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
