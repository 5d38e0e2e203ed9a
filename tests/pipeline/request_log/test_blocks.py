"""Lines that are read in columns have the rows that they have one by one."""

from collections.abc import Iterator
from datetime import UTC
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import line
from tests.pipeline.request_log.damage import log, undamaged
from tests.pipeline.request_log.readings import SOURCE, parsed

from quotascope.pipeline.request_log import blocks, parsing
from quotascope.pipeline.request_log.blocks import BlockReader
from quotascope.pipeline.request_log.joining import Joiner
from quotascope.pipeline.request_log.line import FIELDS, USUAL, USUAL_AT, LineReader, Row, Several
from quotascope.pipeline.request_log.parsing import LONGEST, LogSource
from quotascope.pipeline.request_log.rows import MISFIT, batch_of
from quotascope.pipeline.request_log.schema import Unreadable

Refused = tuple[int, str, str, int]
"""Number of a line, reason and detail, and the number of lines of this text."""


def one_by_one(lines: list[bytes], source: LogSource) -> tuple[list[Row], list[Refused]]:
    """Read lines with `LineReader.row` alone: rows with their numbers in front, and refused lines."""
    reader = LineReader(source.broker, source.zone)
    rows: list[Row] = []
    refused: list[Refused] = []
    unfit: list[Refused] = []
    junk: dict[bytes, int] = {}
    for number, text in messages(lines):
        for request in requests_in(text, reader):
            try:
                row = reader.row(request)
            except Unreadable as error:
                if request in junk:
                    place, reason, detail, count = refused[junk[request]]
                    refused[junk[request]] = place, reason, detail, count + 1
                    continue
                if len(request) <= parsing.SHORT:
                    junk[request] = len(refused)
                refused.append((number, error.reason.value, error.detail, 1))
                continue
            try:
                (values,) = batch_of([row]).to_pylist()
                rows.append((number, *values.values()))
            except MISFIT as error:
                unfit.append((number, "unknown shape", str(error), 1))
    return rows, refused + unfit


def messages(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    joiner = Joiner(LONGEST)
    for number, text in enumerate(lines, start=1):
        if text[USUAL_AT] == USUAL:
            yield number, text
        else:
            yield from ((first or 0, message) for first, message in joiner.take(number, text))
    yield from ((first or 0, message) for first, message in joiner.rest())


def requests_in(text: bytes, reader: LineReader) -> Iterator[bytes]:
    try:
        reader.row(text)
    except Several as several:
        for request in several.lines:
            yield from requests_in(request, reader)
    except Unreadable:
        yield text
    else:
        yield text


def in_columns(lines: list[bytes], source: LogSource) -> tuple[list[Row], list[Refused]]:
    result = parsed(*lines, source=source)
    result.requests.validate(full=True)
    result.quarantine.validate(full=True)
    columns = ["position", *FIELDS]
    refused: list[Any] = result.quarantine.select(["line", "reason", "detail", "lines"]).to_pylist()
    return [tuple(row[name] for name in columns) for row in result.requests.select(columns).to_pylist()], [
        tuple(row.values()) for row in refused
    ]


@given(st.integers(0, 1 << 64).map(Random), st.sampled_from([None, "b"]), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_columns_have_the_rows_of_one_line_after_the_other(random: Random, broker: str | None, zone: str) -> None:
    """
    Columns equal rows for any lines: equal rows, in their order, bit for bit, and equal reasons in the quarantine.

    `repr` tells 0.0 from -0.0, and 1 from True.
    """
    lines, source = log(random), LogSource(file="f", broker=broker, zone=ZoneInfo(zone))
    rows, refused = one_by_one(lines, source)
    assert tuple(map(repr, in_columns(lines, source))) == (repr(rows), repr(refused))


def test_columns_read_what_brokers_write() -> None:
    """All but a few lines of real brokers are read in columns, once each, for all APIs."""
    lines = [text for text in undamaged() if text[USUAL_AT] == USUAL]
    block = BlockReader("b", UTC).read(lines)
    assert sorted(block.places + block.refused) == list(range(len(lines)))
    assert len(block.refused) <= 14
    assert len(set(block.rows["api_key"].to_pylist())) > 20
    assert block.places == sorted(block.places)


@pytest.mark.parametrize(
    "bad",
    [
        b'[2026-11-21 09:02:00,655] DEBUG Completed request:{"requestHeader":{',
        line(header={"correlationId": 1 << 40}),
        line(header={"clientId": "\ud800"}),
        line(header={"requestApiKey": 0, "requestApiVersion": 99}, request={"topicData": []}),
        line(header={"requestApiKey": 19}, request={"topics": 7}),
        line(time="2300-01-01 00:00:00,000"),
        line().replace(b'"requestApiKey":12', b'"x":{"requestApiKey":0,"y":1},"requestApiKey":12'),
    ],
    ids=["cut", "no int32", "no UTF-8", "unknown version", "another shape", "time", "key elsewhere"],
)
def test_a_bad_line_costs_no_time_but_its_own(bad: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand lines, only the bad one and its few neighbors are read one by one."""
    looked: list[bytes] = []
    row = LineReader.row

    def noted(reader: LineReader, text: bytes) -> Row:
        looked.append(text)
        return row(reader, text)

    monkeypatch.setattr(LineReader, "row", noted)
    result = parsed(*[line()] * 500, bad, *[line()] * 500)
    assert bad in looked
    assert len(looked) <= blocks.BISECTED
    assert len(result.requests) + len(result.quarantine) == 1001
    positions: list[Any] = result.requests["position"].to_pylist()
    assert positions == sorted(positions)


def test_a_usual_line_in_front_names_a_text_that_comes_again() -> None:
    """A text of the quarantine has the number of its first line, also where a line with two requests comes first."""
    junk = b" (kafka.request.logger) Completed request:{}"
    result = parsed(line() + b" Completed request:{}", junk, source=SOURCE)
    assert result.quarantine.select(["line", "lines"]).to_pylist() == [{"line": 1, "lines": 2}]
