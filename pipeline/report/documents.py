"""Results of a replay for programs: CSV and JSON."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyarrow import csv

from .account import Account


def as_csv(results: pa.Table) -> str:
    """
    The rows as they are, with a head; names of strangers are quoted and otherwise untouched.

    A spreadsheet may take a name that begins with `=` for a formula: import such columns as text.
    """
    sink = io.BytesIO()
    csv.write_csv(results, sink)
    return sink.getvalue().decode()


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
        "candidates": [asdict(each) for each in account.candidates],
        "results": list(account.rows),
        "notes": list(account.notes),
    }
