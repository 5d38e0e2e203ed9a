"""Results of several parts, added up."""

from typing import Any

import pyarrow as pa
import pytest

from quotascope.pipeline.replay import RESULTS

KEY = ["candidate", "broker", "user", "client_id", "quota_type"]

SUMS = ["requests", "amount", "throttled_requests", "throttled_ms", "muted_ms", "active_ms"]


def summed(parts: list[pa.Table]) -> dict[tuple[Any, ...], list[Any]]:
    """
    Return the sums of the parts by key, and the longest throttle.

    Keys without a request that charged the quota are left out.
    """
    rows: Any = pa.concat_tables([RESULTS.empty_table(), *parts])
    sums = rows.group_by(KEY).aggregate([*((name, "sum") for name in SUMS), ("longest_throttle_ms", "max")])
    return {
        tuple(row[name] for name in KEY): [
            pytest.approx(row["amount_sum"]) if name == "amount" else row[f"{name}_sum"] for name in SUMS
        ]
        + [row["longest_throttle_ms_max"]]
        for row in sums.to_pylist()
        if row["requests_sum"]
    }
