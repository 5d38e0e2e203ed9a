"""Lines that cannot be used go to quarantine with a reason, and harm no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.log_lines import captured, line, values
from tests.pipeline.request_log.lines import AT, parsed, reason, request

from quotascope.pipeline.request_log import parsing
from quotascope.pipeline.request_log.parsing import KEPT_TEXT, LONGEST, LogSource


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "empty"),
        (b" \t\r", "empty"),
        (b"\xff\xfe\x00binary\x00", "not a request"),
        (b"[2026-11-21 09:02:00,655] INFO Completed load of snapshot (x)", "not a request"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:RequestHeader(apiKey=PRODUCE, apiVersion=8)", "layout before 2.8"),
        (b"Completed request:{}", "no time"),
        (b"[2026-13-41 09:02:00,655] DEBUG Completed request:{}", "no time"),
        (b"[2026-11-21 09:02:00,6x5] DEBUG Completed request:{}", "unknown shape"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:", "truncated"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:what", "not JSON"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:{nonsense}", "not JSON"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:[1]", "not JSON"),
        (line()[:300], "truncated"),
        (line()[:60], "truncated"),
        (line()[:400] + line(), "truncated"),
        (line(leave_out=["sendTimeMs"]), "unknown shape"),
        (line(sendTimeMs="1.5"), "unknown shape"),
        (line(requestHeader=None), "unknown shape"),
        (line(connection=5), "unknown shape"),
        (line(throttleTimeMs=1 << 40), "unknown shape"),
        (line(header={"requestApiKey": 40_000}), "unknown shape"),
        (line(responseQueueTimeMs=5e17), "unknown shape"),
        (line(sendTimeMs=86_400_001), "unknown shape"),
        (line(localTimeMs=-1), "unknown shape"),
        (line(remoteTimeMs=1e15), "unknown shape"),
        (line(time="1999-12-31 23:59:59,999"), "unknown shape"),
        (line(time="2200-01-01 00:00:00,000"), "unknown shape"),
        (line(header={"requestApiKey": 0, "requestApiVersion": 99}, request={"topicData": []}), "unknown version"),
        (line(header={"requestApiKey": 0, "requestApiVersion": 9}, request={"topics": []}), "unknown shape"),
        (line(header={"requestApiKey": 0, "requestApiVersion": 9}, request={"topicData": [{"partitionData": [{"recordsSizeInBytes": -1}]}]}), "unknown shape"),
        (line(header={"requestApiKey": 19, "requestApiVersion": 7}, request={"no": "topics"}), "unknown shape"),
        (line(header={"requestApiKey": 19, "requestApiVersion": 7}, request={"topics": [{"name": "t", "numPartitions": "3", "assignments": []}]}), "unknown shape"),
        (line(request="[" * 5_000).replace(b'"' + b"[" * 5_000 + b'"', b"[" * 5_000 + b"]" * 5_000), "not JSON"),
    ]
)  # fmt: skip
def test_quarantine(text: bytes, why: str) -> None:
    """What is no request goes to quarantine, with a reason of a few words and one sentence more."""
    short, detail = reason(text)
    assert short == why
    assert detail


def test_longest_durations() -> None:
    """A request may be worked on for a day, and wait for others as long as the protocol's longest timeout."""
    longest = (1 << 31) - 1
    row = request(line(localTimeMs=86_400_000, remoteTimeMs=longest))
    assert row["thread_time_ms"] == 86_400_000
    assert row["completed"] == AT


def test_gigantic_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line that is too long the beginning and the length are kept; one that fits is read."""
    text = line(principal="User:" + "x" * 10_000)
    monkeypatch.setattr(parsing, "LONGEST", len(text))
    found = parsed(text, text + b" ")
    assert len(found.requests) == 1
    (row,) = found.quarantine.to_pylist()
    assert row["reason"] == "too long"
    assert (row["text"], row["length"]) == (text[:KEPT_TEXT], len(text) + 1)
    assert LONGEST == 16 << 20


def test_a_bad_line_harms_no_other() -> None:
    """Among good lines, those with values that no column can hold are found one by one."""
    good = [line(header={"correlationId": number}) for number in range(50)]
    bad = [line(throttleTimeMs=1 << 40), line(header={"correlationId": 1 << 31})]
    found = parsed(*good[:20], bad[0], *good[20:], bad[1])
    assert found.requests["correlation_id"].to_pylist() == list(range(50))
    assert found.requests["line"].to_pylist() == [*range(1, 21), *range(22, 52)]
    assert found.quarantine["line"].to_pylist() == [21, 52]


def test_identity_of_quarantined_lines() -> None:
    """The same text is the same line, wherever it stands: a file that was renamed brings nothing new."""
    here = [*values(parsed(b"x", b"y").quarantine, "identity"), *values(parsed(b"x").quarantine, "identity")]
    there = parsed(b"x", source=LogSource(file="b")).quarantine["identity"].to_pylist()
    assert here[0] == here[2]
    assert there == here[:1]
    assert len(set(here)) == 2


@given(st.lists(st.binary(max_size=200) | st.sampled_from(captured()[:40]), max_size=20))
def test_each_line_once(lines: list[bytes]) -> None:
    """Whatever is read, each line is in one of the two tables, or the same text is in the quarantine already."""
    found = parsed(*lines)
    numbers = values(found.requests, "line") + values(found.quarantine, "line")
    left = [number for number in range(1, len(lines) + 1) if number not in numbers]
    first = {lines.index(text) + 1 for text in (lines[number - 1] for number in left)}
    assert len(left) == found.again
    assert len(numbers) == len(set(numbers)) == len(lines) - len(left)
    assert first <= set(values(found.quarantine, "line"))


@given(st.sampled_from(captured()[:200]), st.integers(0, 3_000), st.binary(max_size=4))
def test_damaged_lines(text: bytes, at: int, damage: bytes) -> None:
    """A line that was overwritten anywhere is read or quarantined, and never stops the rest."""
    found = parsed(text[:at] + damage + text[at + len(damage) :], line())
    assert len(found.requests) + len(found.quarantine) == 2
