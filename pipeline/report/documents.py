"""Results of a replay for programs: CSV and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyarrow import csv

from quotascope.pages.words import text_cell

from ..whatif.mode import Mode
from ..whatif.results import CLOSED_LOOP_ONLY
from .account import Account


def as_csv(results: pa.Table, mode: Mode) -> str:
    """
    The rows, with a head: a name is a `text_cell`, which no spreadsheet takes for a formula; what a mode does not measure is empty.

    Args:
        results: `quotascope.pipeline.whatif.results.RESULTS`.
        mode: of their replay.

    """
    sink = io.BytesIO()
    columns = [_column(name, results.column(name), mode) for name in results.column_names]  # fmt: skip
    csv.write_csv(pa.table(columns, results.column_names), sink)
    return sink.getvalue().decode()


def _column(name: str, column: Any, mode: Mode) -> Any:  # noqa: ANN401 - Arrow's stubs are of another release
    if name in CLOSED_LOOP_ONLY and mode is Mode.OPEN_LOOP:
        return pa.nulls(len(column), column.type)
    if not pa.types.is_string(column.type):
        return column
    texts: list[str | None] = column.to_pylist()
    return pa.array([None if text is None else text_cell(text) for text in texts], pa.string())  # fmt: skip


def as_json(account: Account) -> str:
    """Candidates added up and the rows; times are ms. Names are as they are."""
    return json.dumps(_values(account), indent=2, allow_nan=False)


def _values(account: Account) -> dict[str, Any]:
    begin, end = account.span_ms
    return {
        "history": account.source,
        "begin_ms": begin,
        "end_ms": end,
        "mode": account.mode.value,
        "kafka": account.kafka.values(),
        "candidates": [_measured(asdict(each), account) for each in account.candidates],
        "results": [_measured(row, account) for row in account.rows],
        "notes": list(account.notes),
    }


def _measured(row: Mapping[str, Any], account: Account) -> dict[str, Any]:
    """A row in which what the mode does not measure is null."""
    unknown = () if account.closed else CLOSED_LOOP_ONLY
    return {name: None if name in unknown else value for name, value in row.items()}
