"""The broker of a request is known or asked for: nothing is added while it is not certain."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders.requests import line
from tests.pipeline.ingest.ingesting import log, read, tables
from tests.pipeline.log_lines import values

from quotascope.pipeline.errors import UnknownBroker
from quotascope.pipeline.ingest import IngestOptions

BY_LINE = IngestOptions()
STRIMZI = (
    "2026-11-21 09:02:00 DEBUG [data-plane-kafka-network-thread-{node}-ListenerName(TLS-9093)-SSL-3] "
    "request.logger:313 - Completed request:{{json}}"
)


def at(address: str, number: int = 0, time: str = "09:02:00,000", **fields: Any) -> bytes:
    """A line of a connection to an address."""
    return line(
        connection=f"{address}-10.0.0.9:{40_000 + number}-0-{number}",
        time=f"2026-11-21 {time}",
        header={"correlationId": number},
        **fields,
    )


def of_node(node: int, number: int = 0) -> bytes:
    """A line in Strimzi's pattern, which has the thread."""
    return line(header={"correlationId": number}, pattern=STRIMZI.format(node=node))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a": [at("10.0.0.1:9092"), at("10.0.0.1:9093", 1)]}, "several addresses"),
        ({"a": [at("10.0.0.1:9092"), at("192.168.0.1:9092", 1)]}, "several addresses"),
        ({"b1/a": [at("10.0.0.1:9092")], "b2/a": [at("10.0.0.2:9092", 1)]}, "several addresses"),
        ({"a": [at("INTERNAL_IP")]}, "INTERNAL_IP is no address of a broker"),
        ({"a": [at("x.x.x.x:9092")]}, "x.x.x.x:9092 is no address of a broker"),
        ({"a": [at("")]}, "an empty text is no address of a broker"),
        ({"a": [at("0.0.0.0:9092")]}, "0.0.0.0:9092 is no address of a broker"),
        ({"a": [at("[::]:9092")]}, "is no address of a broker"),
        (
            {
                "b1/a": [at("172.18.0.2:9092", minute, f"09:0{minute}:00,000") for minute in range(5)],
                "b2/a": [at("172.18.0.2:9092", 10 + minute, f"09:0{minute}:30,000") for minute in range(5)],
            },
            "of the same time and the same address",
        ),
        (
            {"b1/a": [at("127.0.0.1:9092")], "b2/a": [at("127.0.0.1:9092", 1, "09:30:00,000")]},
            "is the same on any host",
        ),
        ({"a": [of_node(1), at("10.0.0.1:9092", 1)]}, "some lines name their broker and others do not"),
    ],
)  # fmt: skip
def test_what_is_asked_for(tmp_path: Path, files: dict[str, list[bytes]], why: str) -> None:
    """An ingest without a broker's name stops with the addresses and the options to set. With a name it goes on."""
    for name, lines in files.items():
        log(tmp_path / "logs", *lines, name=name)
    with pytest.raises(UnknownBroker, match=why) as raised:
        read(tmp_path, str(tmp_path / "logs"), options=BY_LINE)
    assert "--broker NAME" in str(raised.value)
    assert "--broker-pattern" in str(raised.value)
    assert [len(table) for table in tables(tmp_path)] == [0, 0]


@pytest.mark.parametrize(
    ("files", "brokers"),
    [
        ({"a": [at("10.0.0.1:9092"), at("10.0.0.1:9092", 1)]}, {"10.0.0.1"}),
        ({"a": [at("127.0.0.1:9092")]}, {"127.0.0.1"}),
        # rotated files of one log, and a copy
        (
            {
                "a": [at("10.0.0.1:9092", 1, "09:03:00,000")],
                "a.1": [at("10.0.0.1:9092")],
                "copy": [at("10.0.0.1:9092")],
            },
            {"10.0.0.1"},
        ),
        ({"a": [of_node(1), of_node(2, 1)], "b": [of_node(2, 2)]}, {"1", "2"}),
    ],
)  # fmt: skip
def test_what_is_certain(tmp_path: Path, files: dict[str, list[bytes]], brokers: set[str]) -> None:
    """The broker needs no option where a log has one address, or lines name the node."""
    for name, lines in files.items():
        log(tmp_path / "logs", *lines, name=name)
    read(tmp_path, str(tmp_path / "logs"), options=BY_LINE)
    assert set(values(tables(tmp_path)[0], "broker")) == brokers


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([of_node(1), of_node(2, 1)], "the lines of broker b are of the nodes 1, 2"),
        ([at("10.0.0.1:9092"), at("10.0.0.2:9093", 1)], (
            "listener CLIENTS of broker b has the addresses 10.0.0.1:9092 and 10.0.0.2:9093")),
    ],
)  # fmt: skip
def test_a_name_for_two(tmp_path: Path, lines: list[bytes], why: str) -> None:
    """An option that the lines contradict is refused by name."""
    with pytest.raises(UnknownBroker, match=why):
        read(tmp_path, log(tmp_path, *lines), options=IngestOptions(broker="b"))
    assert [len(table) for table in tables(tmp_path)] == [0, 0]


@pytest.mark.parametrize(
    "lines",
    [
        # another listener, another address of the same port, and a port that was changed later
        [at("10.0.0.1:9092"), at("10.0.0.1:9093", 1, listener="ADMIN")],
        [at("10.0.0.1:9092"), at("192.168.0.1:9092", 1)],
        [at("10.0.0.1:9092"), at("10.0.0.1:9095", 1, "09:03:00,000")],
        [at("INTERNAL_IP"), at("x:1", 1, listener="ADMIN")],
    ],
)
def test_a_name_for_several_addresses(tmp_path: Path, lines: list[bytes]) -> None:
    """A broker may have several listeners and addresses: a given name is for all of them."""
    assert read(tmp_path, log(tmp_path, *lines), options=IngestOptions(broker="b")).kept == 2


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ((at("10.0.0.1:9092"), None), (at("10.0.0.1:9093", 1), None), "are of another address"),
        ((at("10.0.0.1:9092"), None), (at("10.0.0.2:9092", 1), None), "are of another address"),
        ((at("10.0.0.1:9092"), None), (at("10.0.0.1:9092", 1), "1"), "no name there but its address"),
        # the same lines again, named to mend what the first run made of them
        ((at("10.0.0.1:9092"), None), (at("10.0.0.1:9092"), "1"), "no name there but its address"),
        ((at("10.0.0.1:9092"), "1"), (at("10.0.0.1:9092", 1), None), "are named, and that of these is not"),
        ((of_node(1), None), (at("10.0.0.1:9092", 1), None), "are named, and that of these is not"),
    ],
)
def test_a_second_ingest_that_contradicts_the_first(
    tmp_path: Path, first: tuple[bytes, str | None], second: tuple[bytes, str | None], why: str
) -> None:
    """A folder with one kind of broker names refuses another kind: one broker could be two, or two one."""
    read(tmp_path, log(tmp_path, first[0]), options=IngestOptions(broker=first[1]))
    with pytest.raises(UnknownBroker, match=why):
        read(tmp_path, log(tmp_path, second[0], name="b.log"), options=IngestOptions(broker=second[1]))
    assert len(tables(tmp_path)[0]) == 1


@pytest.mark.parametrize("broker", [None, "1"])
def test_a_second_ingest_that_agrees(tmp_path: Path, broker: str | None) -> None:
    """Later logs of the same broker are added to the same folder."""
    options = IngestOptions(broker=broker)
    for number in range(2):
        path = log(tmp_path, at("10.0.0.1:9092", number, f"09:0{number}:00,000"), name=f"{number}.log")
        assert read(tmp_path, path, options=options).kept == 1
