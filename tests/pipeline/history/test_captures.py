"""History of what real brokers logged."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.runs.ingest import ingest_logs

CAPTURES = Path(__file__).parents[1] / "captures"
EXEMPT_APIS = {4, 5, 6}
"""
LeaderAndIsr, StopReplica and UpdateMetadata.

What a controller in ZooKeeper mode sends to brokers; no quota counts these, nor the Fetches of replicas.
"""


@pytest.mark.parametrize("log", sorted(CAPTURES.glob("*.log.gz")), ids=lambda log: log.name)
def test_sums_are_those_of_the_log(log: Path, tmp_path: Path) -> None:
    """The sums of a client's requests, thread time, throttles, bytes and throttled fetches are those of its lines."""
    ingest_logs([str(log)], str(tmp_path), IngestOptions(broker="1"))
    requests: Counter[Any] = Counter()
    records: Counter[Any] = Counter()
    throttled = 0
    for text in gzip.decompress(log.read_bytes()).splitlines():
        line = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1], parse_float=Decimal)
        header, user, response = line["requestHeader"], line["principal"].removeprefix("User:"), line["response"]
        replica = line["request"].get("replicaState", line["request"]).get("replicaId", -1)
        if not line["isForwarded"] and header["requestApiKey"] not in EXEMPT_APIS and replica < 0:
            client = user, header["clientId"] or ""
            requests[*client, "requests"] += 1
            requests[*client, "amount"] += int((line["localTimeMs"] + line["sendTimeMs"]) * 1000)
            requests[*client, "throttle_ms"] += response.get("throttleTimeMs", 0)
        moved = line["request"]["topicData"] if header["requestApiKey"] == 0 else ()
        if header["requestApiKey"] == 1 and replica < 0:
            moved = response["responses"]
            throttled += response["throttleTimeMs"] > 0
        for topic in moved:
            partitions = next(
                topic[key] for key in ("partitionData", "partitions", "partitionResponses") if key in topic
            )
            size = sum(
                partition.get("recordsSizeInBytes", partition.get("recordSetSizeInBytes")) for partition in partitions
            )
            records[user, topic.get("name", topic.get("topic")), topic.get("topicId")] += size
    history = History.open(str(tmp_path))
    charged: Counter[Any] = Counter()
    for row in history.seconds.read().to_pylist():
        if row["quota_type"] == "request":
            for name in ("requests", "amount", "throttle_ms"):
                charged[row["user"], row["client_id"], name] += row[name]
    assert requests.total() > 0
    assert +charged == +requests
    topics = history.topics.read()
    counted: Counter[Any] = Counter()
    for row in topics.filter(pc.field("kind") == "records").to_pylist():
        counted[row["user"], row["topic"], row["topic_id"]] += row["bytes"]
    assert +counted == +records
    unsized = topics.filter(pc.field("kind") == "unknown size")
    assert (pc.sum(unsized["requests"]).as_py() or 0) == throttled
