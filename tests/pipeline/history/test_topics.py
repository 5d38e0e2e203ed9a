"""Bytes by topic add up to what the quotas charged, and name what the log names."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.history.requests import START_MS, requests

from quotascope.pipeline.history import history_of, rollup
from quotascope.pipeline.history.schema import TOPICS
from quotascope.pipeline.history.topics import topics_of
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.table import Table

CAPTURES = Path(__file__).parents[1] / "captures"
Row: TypeAlias = dict[str, Any]
NAMES = st.sampled_from(["orders", "<b>", 'a\n"b', "Ünï 😀"])
SIZES = st.integers(0, 2**40)


@st.composite
def moved(draw: st.DrawFn) -> Row:
    """A request that moves records, or not; its charge is its records and some more."""
    key = draw(st.sampled_from([0, 1, 78, 3]))
    by_name = st.builds(lambda name, size: {"topic": name, "id": None, "bytes": size}, NAMES, SIZES)
    by_id = st.builds(lambda name, size: {"topic": None, "id": name, "bytes": size}, NAMES, SIZES)
    traffic = draw(st.none() | st.lists(by_name | by_id, max_size=3)) if key != 3 else None
    size = None if key == 3 else draw(SIZES | st.none() if traffic is None else SIZES)
    if size is not None:
        size += sum(each["bytes"] for each in traffic or ())
    return {
        "api_key": key,
        "produce_bytes": size if key == 0 else None,
        "fetch_bytes": None if key == 0 else size,
        "traffic": traffic,
        "timestamp": draw(st.integers(START_MS, START_MS + 200_000)),
        "user": draw(st.sampled_from(["a", "b", None])),
        "client_id": draw(st.sampled_from([None, "x"])),
        "broker": draw(st.sampled_from(["1", "2"])),
        "follower": draw(st.booleans()),
        "forwarded": draw(st.booleans()),
    }


def sums(rows: pa.Table, *by: str) -> Counter[tuple[Any, ...]]:
    """Bytes by what is given; unknown ones count nothing."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows.to_pylist():
        found[tuple(row[name] for name in by)] += row.get("bytes", row.get("amount")) or 0
    return +found


def of_kind(rows: pa.Table, kind: str) -> pa.Table:
    """The rows of one kind."""
    return rows.filter(pc.is_in(rows["kind"], pa.array([kind])))


@given(st.lists(moved(), max_size=20), st.integers(0, 20))
def test_topics_add_up_to_what_was_charged(rows: list[Row], cut: int) -> None:
    """By client, broker, quota type and minute, to the byte; by topic as logged; in whatever parts the requests come."""
    table = requests(*rows)
    found = topics_of(table)
    assert found.schema == TOPICS
    seconds = rollup(history_of(table))
    seconds = seconds.filter(pc.is_in(seconds["quota_type"], pa.array(["produce", "fetch"])))
    start = seconds.schema.get_field_index("start")
    minutes = pa.array(seconds["start"].to_numpy() // 60_000 * 60_000)
    seconds = seconds.set_column(start, "start", minutes)
    key = ("user", "client_id", "broker", "quota_type", "start")
    assert sums(found, *key) == sums(seconds, *key)
    seen = [row for row in rows if row["api_key"] != 3 and not row["follower"] and not row["forwarded"]]
    held: Counter[tuple[Any, ...]] = Counter()
    for row in seen:
        for each in row["traffic"] or ():
            held[row["user"] or "", each["topic"], each["id"]] += each["bytes"]
    records = of_kind(found, "records")
    assert sums(records, "user", "topic", "topic_id") == +held
    charged = [row["produce_bytes"] if row["api_key"] == 0 else row["fetch_bytes"] for row in seen]
    unsized = of_kind(found, "unknown size")
    assert (pc.sum(unsized["requests"]).as_py() or 0) == charged.count(None)
    assert unsized["bytes"].null_count == len(unsized)
    parts = pa.concat_tables([topics_of(table[:cut]), topics_of(table[cut:])])
    every = (*key, "kind", "topic", "topic_id")
    assert sums(parts, *every) == sums(found, *every)


def test_names_of_ids() -> None:
    """Once a day, of no client; a row of requests has no name that it did not log."""
    pair = {"topic_ids": [{"topic": "orders", "id": "i1"}, {"topic": "<b>", "id": "i2"}]}
    later = pair | {"timestamp": START_MS + 86_400_000}
    found = topics_of(requests(pair, pair | {"user": "bob"}, later))
    rows = {
        (row["topic_id"], row["topic"], row["start"] % 86_400_000, row["user"], row["requests"], row["bytes"])
        for row in found.to_pylist()
    }
    assert rows == {("i1", "orders", 0, "", 0, None), ("i2", "<b>", 0, "", 0, None)}
    assert len(found) == 4


@pytest.mark.parametrize("log", sorted(CAPTURES.glob("*.log.gz")), ids=lambda log: log.name)
def test_a_real_log(log: Path, tmp_path: Path) -> None:
    """Bytes of each client and topic are those of the lines, and throttled fetches are counted."""
    ingest_logs([str(log)], str(tmp_path), IngestOptions(broker="1"))
    expected: Counter[tuple[Any, ...]] = Counter()
    throttled = 0
    for text in gzip.decompress(log.read_bytes()).splitlines():
        line = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])
        key, user = line["requestHeader"]["requestApiKey"], line["principal"].removeprefix("User:")
        throttled += key == 1 and line["response"]["throttleTimeMs"] > 0
        asked = (
            line["request"].get("topicData", ())
            if key == 0
            else line["response"].get("responses", ())
            if key == 1
            else ()
        )
        for topic in asked:
            partitions = topic.get("partitionData", topic.get("partitions"))
            expected[user, topic.get("name"), topic.get("topicId")] += sum(
                each["recordsSizeInBytes"] for each in partitions
            )
    found = Table.open(f"{tmp_path}/topics").read()
    records = of_kind(found, "records")
    assert sums(records, "user", "topic", "topic_id") == +expected
    unsized = of_kind(found, "unknown size")
    assert (pc.sum(unsized["requests"]).as_py() or 0) == throttled
