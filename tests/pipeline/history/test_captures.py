"""History of what real brokers logged, against a plain reading of their lines."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestTables, ingest

CAPTURES = Path(__file__).parents[1] / "captures"

Key = tuple[str, str, str]


def _lines(log: Path) -> list[dict[str, Any]]:
    """The requests of clients, as JSON; numbers with a point as they are written."""
    with gzip.open(log, "rt", encoding="utf-8") as lines:
        found = (json.loads(line[line.index("{") : line.rindex("}") + 1], parse_float=Decimal) for line in lines)
        return [each for each in found if not each["isForwarded"]]


def _expected(log: Path) -> Counter[Key]:
    """Requests, thread time in us and ms of throttle by user, client id and what it is."""
    sums: Counter[Key] = Counter()
    for line in _lines(log):
        header = line["requestHeader"]
        client = (line["principal"].removeprefix("User:"), header["clientId"] or "")
        sums[*client, "requests"] += 1
        sums[*client, "us"] += int((line["localTimeMs"] + line["sendTimeMs"]) * 1000)
        sums[*client, "reported"] += line["response"].get("throttleTimeMs", 0)
    return sums


def _kept(history: History) -> Counter[Key]:
    sums: Counter[Key] = Counter()
    for row in history.seconds.read().to_pylist():
        if row["quota_type"] == "request":
            client = (row["user"], row["client_id"])
            sums[*client, "requests"] += row["requests"]
            sums[*client, "us"] += row["amount"]
            sums[*client, "reported"] += row["throttle_ms"]
    return sums


@pytest.mark.parametrize("log", sorted(CAPTURES.glob("*.log.gz")), ids=lambda log: log.name)
def test_sums_are_those_of_the_log(log: Path, tmp_path: Path) -> None:
    """Requests, thread time and throttles of each client are those of the lines, to the last microsecond."""
    ingest([str(log)], str(tmp_path), IngestOptions(broker="1"))
    history = History.create(str(tmp_path))
    history.update(IngestTables.create(str(tmp_path)).requests)
    expected = _expected(log)
    assert sum(expected.values()) > 0
    assert +_kept(history) == +expected
