"""
Lines of a request log as one Parquet file, as a user of DuckDB or Polars would write it, on one core.

Both take the time and 16 fields, and leave out what follows from the rest: identity, size for the quota, topics, and
the reason why a line cannot be read.
"""

import os
from collections.abc import Sequence
from typing import Final

from quotascope.pipeline.ingest.local import lines_of
from quotascope.pipeline.request_log.joining import Joiner
from quotascope.pipeline.request_log.parsing import LONGEST, LogSource, parse_lines

_BEGIN: Final = 50
"""Number of characters in front of the JSON."""
_END: Final = " (kafka.request.logger)"
_STRUCTURE: Final = """{
    "isForwarded": "BOOLEAN", "connection": "VARCHAR", "principal": "VARCHAR", "listener": "VARCHAR",
    "requestHeader": {"requestApiKey": "SMALLINT", "requestApiVersion": "SMALLINT", "correlationId": "INTEGER",
        "clientId": "VARCHAR"},
    "response": {"throttleTimeMs": "INTEGER"}, "clientInformation": {"softwareName": "VARCHAR"},
    "localTimeMs": "DOUBLE", "remoteTimeMs": "DOUBLE", "responseQueueTimeMs": "DOUBLE", "sendTimeMs": "DOUBLE",
    "requestQueueTimeMs": "DOUBLE", "throttleTimeMs": "INTEGER"
}"""


def by_duckdb(files: Sequence[str], parquet: str) -> None:
    """Write them by one query of DuckDB."""
    import duckdb  # noqa: PLC0415 - of the side that works here alone

    database = duckdb.connect(config={"threads": 1})
    database.execute(
        f"""
        COPY (
            SELECT epoch_ms(strptime(stamp, '%Y-%m-%d %H:%M:%S,%g')) AS completed, unnest(json_transform(json, ?))
            FROM (
                SELECT line[2:24] AS stamp, line[{_BEGIN + 1}:-{len(_END) + 1}] AS json
                FROM read_csv(?, header = false, delim = '\x01', quote = '', escape = '', columns = {{'line': 'VARCHAR'}},
                    max_line_size = 16777216)
            )
            WHERE json_valid(json)
        ) TO '{parquet}' (FORMAT parquet)
        """,  # noqa: S608 - a path of the benchmark
        [_STRUCTURE, list(files)],
    )
    database.close()


def by_polars(files: Sequence[str], parquet: str) -> None:
    """Write them by Polars, a column of JSON decoded with a type."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import polars as pl  # noqa: PLC0415 - reads the variable

    header = pl.Struct(
        {"requestApiKey": pl.Int16, "requestApiVersion": pl.Int16, "correlationId": pl.Int32, "clientId": pl.String}
    )
    fields = pl.Struct({
        "isForwarded": pl.Boolean, "connection": pl.String, "principal": pl.String, "listener": pl.String,
        "requestHeader": header, "response": pl.Struct({"throttleTimeMs": pl.Int32}),
        "clientInformation": pl.Struct({"softwareName": pl.String}), "localTimeMs": pl.Float64,
        "remoteTimeMs": pl.Float64, "responseQueueTimeMs": pl.Float64, "sendTimeMs": pl.Float64,
        "requestQueueTimeMs": pl.Float64, "throttleTimeMs": pl.Int32,
    })  # fmt: skip
    lines = pl.concat(
        pl.read_csv(
            file, has_header=False, separator="\x01", quote_char=None, new_columns=["line"], encoding="utf8-lossy"
        )
        for file in files
    )
    line = pl.col("line").str
    texts = lines.filter(line.ends_with("}" + _END)).select(
        line.slice(1, 23).str.to_datetime("%Y-%m-%d %H:%M:%S,%3f").dt.epoch("ms").alias("completed"),
        line.slice(_BEGIN).str.strip_suffix(_END).str.json_decode(fields).alias("fields"),
    )
    texts.unnest("fields").write_parquet(parquet)


def parse(files: Sequence[str], lines: int) -> None:
    """Parse so many lines into `Parsed`, and drop them."""
    parsed_lines = 0
    for file in files:
        source, joiner = LogSource(file=file, broker="1"), Joiner(LONGEST)
        for block, _ in lines_of(file):
            parsed = parse_lines(block, range(1, len(block) + 1), source, joiner)
            parsed_lines += len(parsed.requests) + len(parsed.quarantine)
    assert parsed_lines == lines
