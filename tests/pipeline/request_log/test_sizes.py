"""Sizes worked out by shape are those of `wire_size`, to the byte."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.log_lines import captured

from quotascope.pipeline.errors import UnknownVersion, UnreadableMessage
from quotascope.pipeline.request_log.messages import FetchResponse, ProduceRequest
from quotascope.pipeline.request_log.sizes import fetch_size, produce_size
from quotascope.pipeline.wire_size import fetch_bytes, produce_bytes

SIZES = st.one_of(st.none(), st.integers(0, 1 << 30), st.sampled_from([126, 127, 128, 16_382, 16_383]))  # fmt: skip
NAMES = st.text(max_size=200)


def produced(request: Any) -> ProduceRequest:
    """A request as it is taken out of a line."""
    return msgspec.json.decode(json.dumps(request).encode(), type=ProduceRequest)


def fetched(response: Any) -> FetchResponse:
    """A response as it is taken out of a line."""
    return msgspec.json.decode(json.dumps(response).encode(), type=FetchResponse)


@given(
    st.integers(0, 12),
    st.one_of(st.none(), NAMES),
    st.one_of(st.none(), NAMES),
    st.lists(st.tuples(NAMES, st.lists(SIZES, max_size=4)), max_size=4),
)
def test_produce(
    version: int, client: str | None, transaction: str | None, topics: Any
) -> None:
    """Any Produce request."""
    data = [
        {"name": name, "partitionData": [{"index": 0, "recordsSizeInBytes": size} for size in sizes]}
        for name, sizes in topics
    ]  # fmt: skip
    request = {"topicData": data, "transactionalId": transaction}
    header = {"requestApiVersion": version, "clientId": client}
    expected = produce_bytes(header, request)
    assert produce_size(version, client, produced(request)) == expected


@given(
    st.integers(4, 18),
    st.lists(
        st.tuples(NAMES, st.lists(st.tuples(SIZES, st.integers(0, 2), st.booleans()), max_size=4)),
        max_size=4,
    ),
    st.sampled_from([0, 0, 0, 5]),
)  # fmt: skip
def test_fetch(version: int, topics: Any, throttle: int) -> None:
    """Any Fetch response, with aborted transactions and tagged fields; none when it was throttled."""
    data = [
        {
            "topic": name,
            "partitions": [
                {
                    "recordsSizeInBytes": size,
                    "abortedTransactions": [{}] * aborted if aborted else None,
                    **({"currentLeader": {}} if tagged else {}),
                }
                for size, aborted, tagged in partitions
            ],
        }
        for name, partitions in topics
    ]
    response = {"responses": data, "throttleTimeMs": throttle}
    expected = fetch_bytes({"requestApiVersion": version}, response)
    assert fetch_size(version, fetched(response)) == expected


def test_real_messages() -> None:
    """All of a real log."""
    seen = 0
    for text in captured():
        entry = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])
        header = entry["requestHeader"]
        version = header["requestApiVersion"]
        if header["requestApiKey"] == 0:
            expected = produce_bytes(header, entry["request"])
            found = produce_size(version, header["clientId"], produced(entry["request"]))  # fmt: skip
            assert found == expected
        elif header["requestApiKey"] == 1:
            expected_or_none = fetch_bytes(header, entry["response"])
            assert fetch_size(version, fetched(entry["response"])) == expected_or_none
        else:
            continue
        seen += 1
    assert seen == 5246


def test_what_cannot_be_told() -> None:
    """A topic without a name where a name is due, and versions of the future, are refused."""
    nameless = produced({"topicData": [{"partitionData": []}], "transactionalId": None})
    with pytest.raises(UnreadableMessage):
        produce_size(9, "c", nameless)
    assert produce_size(13, "c", nameless) > 0
    with pytest.raises(UnknownVersion):
        produce_size(99, "c", nameless)
