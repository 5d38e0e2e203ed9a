"""Usage history, made by hand: rows, and folders on disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.builders.requests import PRODUCE, Request
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import HISTORY, History, rollup

MONDAY = 1_795_392_000_000
"""2026-11-23 00:00:00 UTC"""
HOUR = 3_600_000


def request(at_ms: int, **values: Any) -> dict[str, Any]:
    """Return a request so many ms after `MONDAY` that charges no quota, with these values."""
    return Request(at_ms=MONDAY + at_ms, network_after_ms=0, client_id="app1", api_version=11).history(
        **{"api_key": PRODUCE, **values}
    )


def produced(at_ms: int, size: int, **values: Any) -> dict[str, Any]:
    return request(at_ms, produce_bytes=size, **values)


def mutated(at_ms: int, partitions: int | None, **values: Any) -> dict[str, Any]:
    """A CreateTopics that is new enough to be refused."""
    charged = {"mutations_charged": partitions, "mutation_timestamp": MONDAY + at_ms}
    kind = {"api_key": 19, "api_version": 7, "mutations": partitions}
    return request(at_ms, **{**kind, **charged, **values})


def history(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=HISTORY)


def make_folder(folder: Path, rows: Iterable[dict[str, Any]]) -> str:
    """Return the history that `quotascope ingest` makes of logs with these requests."""
    usage = History.create(str(folder), shards=4)
    detail = history(rows)
    append(usage.detail, "by hand", detail)
    append(usage.seconds, "by hand", rollup(detail))
    return str(folder)
