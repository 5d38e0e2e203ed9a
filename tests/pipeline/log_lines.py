"""Lines of the request log of a real broker."""

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

CAPTURE = Path(__file__).parent / "captures" / "kafka-4.3.1-request.log.gz"


def values(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()


@cache
def captured() -> tuple[bytes, ...]:
    return tuple(gzip.decompress(CAPTURE.read_bytes()).splitlines())
