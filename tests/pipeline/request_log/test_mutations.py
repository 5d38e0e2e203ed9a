"""Numbers of partitions that requests mutate, from all lines together; forwarded requests count once."""

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import line, mutation, topic
from tests.pipeline.log_lines import captured
from tests.steps import steps

from quotascope.pipeline.request_log.mutations import MutationLedger, OneSide, Row
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines

SOURCE = LogSource(file="a.log")
AT_MS = 1_795_251_601_000
"""2026-11-21 09:00:01 UTC"""
REFUSED = 89
EXISTS = 36
TIMED_OUT = 7


def requests(*lines: bytes) -> pa.Table:
    resolved_requests = parse_lines(lines, range(1, len(lines) + 1), SOURCE)
    assert resolved_requests.quarantine.to_pylist() == []
    return resolved_requests.requests


def reported(table: pa.Table) -> list[Any]:
    """Return requested and charged mutations, and whether these are known, of requests that name topics."""
    kinds = ("partitions_created", "partitions_added", "partitions_deleted")
    return [
        (next((row[kind] for kind in kinds if row[kind]), None), row["mutations_charged"], row["mutations_known"])
        for row in table.filter(pc.is_valid(table["topics"])).to_pylist()
    ]


def resolved(*lines: bytes, snapshot: dict[str, int] | None = None) -> list[Any]:
    return reported(MutationLedger(snapshot).resolve(requests(*lines)).requests)


def minute(second: int) -> str:
    return f"2026-11-21 09:00:{second:02d},000"


def test_real_log() -> None:
    """A real log shows creates, an enlargement and the deletion of 55 partitions, without eight second lines."""
    resolved_requests = MutationLedger().resolve(requests(*captured()))
    assert (resolved_requests.forwarded, len(resolved_requests.requests)) == (8, len(captured()) - 8)
    assert reported(resolved_requests.requests) == [
        (3, 3, True), (1, 1, True), *[(10, 10, True)] * 4, (15, 15, True), (55, 55, True),
    ]  # fmt: skip
    assert pc.sum(resolved_requests.requests["forwarded"]).as_py() == 0


def made(name: str, partitions: int, second: int, **fields: Any) -> bytes:
    return mutation("create", [topic(name, partitions)], time=minute(second), **fields)


def enlarged(name: str, count: int, second: int) -> bytes:
    topics = [{"name": name, "count": count, "assignments": None}]
    return mutation("enlarge", topics, time=minute(second))


def deleted(second: int, *names: str) -> bytes:
    return mutation("delete", [{"name": name} for name in names], time=minute(second))


UNKNOWN = (None, None, False)
OLD_DELETE = line(
    time=minute(2),
    header={"requestApiKey": 20, "requestApiVersion": 4},
    request={"topicNames": ["t"]},
    response={"throttleTimeMs": 0, "responses": [{"name": "t", "errorCode": 0}]},
)
BY_DEFAULT = [{"name": "c", "errorCode": 0, "numPartitions": 6, "topicId": "x"}]
HOSTILE = '"],"errorCode":89,\n' + "é" * 249


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([mutation("create", [topic("a", 3), topic("b", 2)])], [(5, 5, True)]),
        ([mutation("create", [topic("b2", assignments=4)])], [(4, 4, True)]),
        ([mutation("create", [topic("c")], answers=BY_DEFAULT)], [(6, 6, True)]),
        # an old response does not contain the default number of partitions: unknown, not guessed
        ([mutation("create", [topic("a", 3), topic("c")], version=4)], [UNKNOWN]),
        # after a time-out the controller may have done it
        ([mutation("create", [topic("a", 3)], answers=[{"name": "a", "errorCode": TIMED_OUT}])], [UNKNOWN]),
        ([made("t", 3, 1), enlarged("t", 10, 2), deleted(3, "t")], [(3, 3, True), (7, 7, True), (10, 10, True)]),
        # DeleteTopics before version 6 has a list of names
        ([made("t", 2, 1), OLD_DELETE], [(2, 2, True), (2, 2, True)]),
        # a topic that was deleted is unknown until it is created again
        (
            [made("t", 3, 1), deleted(2, "t"), deleted(3, "t"), made("t", 5, 4), deleted(5, "t")],
            [(3, 3, True), (3, 3, True), UNKNOWN, (5, 5, True), (5, 5, True)],
        ),
        # a dry run is charged, as KRaft does, and makes no topic
        ([made("t", 3, 1, more={"validateOnly": True}), deleted(2, "t")], [(3, 3, True), UNKNOWN]),
        ([made(HOSTILE, 2, 1), deleted(2, HOSTILE)], [(2, 2, True), (2, 2, True)]),
    ]
)  # fmt: skip
def test_what_requests_mutate(lines: list[bytes], expected: list[Any]) -> None:
    """A request mutates its created partitions, the added ones, or those of a deleted topic."""
    assert resolved(*lines) == expected


def test_unknown_topics() -> None:
    """Topics that were there before the log count only with a snapshot."""
    lines = [enlarged("t", 10, 1), deleted(2, "u", "t")]
    assert resolved(*lines) == [UNKNOWN] * 2
    assert resolved(*lines, snapshot={"t": 4, "u": 1}) == [(6, 6, True), (11, 11, True)]


@given(st.permutations([made("t", 3, 1), enlarged("t", 5, 2), deleted(3, "t"), made("t", 7, 4), enlarged("t", 5, 2)]))
def test_any_order(lines: list[bytes]) -> None:
    """The order in which lines are learned changes no charge: the last line before a request counts."""
    ledger = MutationLedger()
    for each in lines:
        ledger.resolve(requests(each))
    resolved_requests = [
        reported(ledger.resolve(requests(deleted(second, "t"))).requests) for second in (1, 2, 3, 4, 5)
    ]
    assert [resolved_request[0][1] for resolved_request in resolved_requests] == [None, 3, 5, None, 7]


def test_refused_and_failed() -> None:
    """
    Mutations that the quota refused count as requested and not as charged.

    Those that failed before the quota count as neither.
    """
    answers = [{"name": name, "errorCode": code} for name, code in (("a", 0), ("b", REFUSED), ("c", EXISTS))]
    topics = [topic("a", 3), topic("b", 4), topic("c", 5)]
    table = MutationLedger().resolve(requests(mutation("create", topics, answers=answers))).requests
    assert reported(table) == [(7, 3, True)]
    assert table["refused"].to_pylist() == [True]


def test_a_request_for_more_partitions_than_a_column_holds() -> None:
    """Any client may ask for 2^31-1 partitions of each of two topics: the sum stops there, and the log is read on."""
    int_max = (1 << 31) - 1
    topics = [topic("orders", int_max), topic("payments", int_max)]
    answers = [{"name": "orders", "errorCode": REFUSED}, {"name": "payments", "errorCode": REFUSED}]
    deleted = mutation("delete", [{"name": "large"}], time=minute(3))
    resolved_requests = resolved(mutation("create", topics, answers=answers), deleted, snapshot={"large": 1 << 40})
    assert resolved_requests == [(int_max, 0, True), (int_max, int_max, True)]


def test_no_answer() -> None:
    """The charge of a request is unknown without its answer or its content."""
    create = {"requestApiKey": 19, "requestApiVersion": 7}
    delete = {"requestApiKey": 20, "requestApiVersion": 6}
    lines = [
        line(header=create, request={"topics": [topic("a", 1)]}, response=""),
        line(header=create, request="", response=""),
        line(header=delete, request={"topics": [{"name": "a"}]}, response=""),
        line(header=delete, request={"topicNames": ["a"]}, response=""),
    ]
    assert resolved(*lines) == [(None, None, False)] * 4


def twins() -> tuple[bytes, bytes]:
    """The client's line of a forwarded request, and the controller's."""
    client = mutation("create", [topic("t", 3)], time="2026-11-21 09:00:01,005")
    place: dict[str, Any] = {"listener": "CONTROLLER", "connection": "10.0.0.1:9093-10.0.0.1:1-0-0"}
    return client, mutation("create", [topic("t", 3)], time=minute(1), isForwarded=True, **place)


CLIENT, CONTROLLER = twins()
CHANGE = {"requestApiKey": 44, "requestApiVersion": 1}


TWINS: dict[str, Any] = {
    # the client's line stays, with the controller's time of the charge, in whatever order they come
    "client first": ([CLIENT, CONTROLLER], [("CLIENTS", 3, AT_MS - 12)]),
    "controller first": ([CONTROLLER, CLIENT], [("CLIENTS", 3, AT_MS - 12)]),
    # a client that counts from one again sends another request, not a twin
    "an hour later": (
        [CLIENT, CONTROLLER.replace(b"09:00:01,000", b"10:00:01,000")],
        [("CLIENTS", 3, AT_MS - 7), ("CONTROLLER", 3, AT_MS + 3_599_988)],
    ),
    "as far apart as clocks may be": (
        [CLIENT.replace(b"01,005", b"06,000"), CONTROLLER],
        [("CLIENTS", 3, AT_MS - 12)],
    ),
    "too far": (
        [CLIENT.replace(b"01,005", b"06,001"), CONTROLLER],
        [("CLIENTS", 3, AT_MS + 4_989), ("CONTROLLER", 3, AT_MS - 12)],
    ),
    # of a forwarded change of configuration the client's line has all
    "no mutation": (
        [line(time=minute(1), header=CHANGE), line(header=CHANGE, isForwarded=True)],
        [("CLIENTS", None, None)],
    ),
    "not forwarded": ([line()], [("CLIENTS", None, None)]),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("lines", "left"), TWINS.values(), ids=TWINS)
def test_twins_at_once(lines: list[bytes], left: list[Any]) -> None:
    """One of the two lines of a forwarded request is left out."""
    resolved_requests = MutationLedger().resolve(requests(*lines))
    rows = resolved_requests.requests.to_pylist()
    assert [(row["listener"], row["mutations_charged"], row["mutation_timestamp"]) for row in rows] == left
    assert resolved_requests.forwarded == len(lines) - len(left)


def test_a_second_line_comes_again() -> None:
    """A copy of the controller's line is left out as the line was, and takes no other request's client."""
    client, controller = twins()
    later_line = client.replace(b"09:00:01,005", b"09:00:02,005")
    ledger = MutationLedger()
    ledger.resolve(requests(client, later_line))
    for _ in range(3):
        resolved_requests = ledger.resolve(requests(controller))
        assert (resolved_requests.forwarded, len(resolved_requests.requests)) == (1, 0)
    later = controller.replace(b"09:00:01,000", b"09:00:02,000")
    assert ledger.resolve(requests(later)).forwarded == 1


def test_a_program_that_asks_for_the_same_each_minute() -> None:
    """A program that restarts each minute and sends the same numbers is charged for each pair of lines."""
    clocks = [
        f"2026-11-{minute // 1440:02d} {minute // 60 % 24:02d}:{minute % 60:02d}" for minute in range(1440, 2 * 1440)
    ]
    lines = [
        mutation("create", [topic("t", 3)], time=f"{clock}:00,0{forwarded:02d}", isForwarded=bool(forwarded))
        for clock in clocks
        for forwarded in (0, 5)
    ]
    half, whole = requests(*lines[: len(lines) // 2]), requests(*lines)
    assert MutationLedger().resolve(whole).forwarded == len(clocks)
    of_half, all_ = (steps(partial(MutationLedger().resolve, each)) for each in (half, whole))
    assert all_ < 2.1 * of_half


def test_a_batch_that_is_tried_again() -> None:
    """A batch that is resolved again after a failed commit has the same result, whichever line is in the table."""
    client, controller = twins()
    for is_first, batch, expected in (
        ([controller], [client], [(None, None, True)]),
        ([client], [controller], []),
        ([], [client, controller], [(3, 3, True)]),
        ([], [controller], [(3, 3, True)]),
    ):
        ledger = MutationLedger()
        ledger.remember(requests(*is_first))
        for _ in range(2):
            resolved_requests = ledger.resolve(requests(*batch)).requests
            assert reported(resolved_requests) == expected
            # only a request that may charge has a time of the charge: without partitions it charges an unknown number
            assert resolved_requests["mutation_timestamp"].null_count == sum(not charged for _, charged, _ in expected)


def test_a_side_holds_only_so_many_lines() -> None:
    """The oldest of too many waiting lines is taken for unknown and makes room."""
    names = {"api_key": 19, "client_id": "c", "user": "u", "topics": [], "completed": 0}
    rows: list[Row] = [{**names, "correlation_id": number, "identity": b"%d" % number} for number in range(3)]
    side = OneSide(capacity=2)

    def paired() -> list[bool]:
        return [side.pair({**row, "identity": b"twin " + row["identity"]}) is not None for row in rows]

    for row in (*rows, rows[2]):
        side.add(row)
    assert paired() == [False, True, True]
    side.drop(rows[1]["identity"])
    side.drop(rows[1]["identity"])
    side.add(rows[0])
    assert paired() == [True, False, True]


UPDATE = line(time=minute(1), header={"requestApiKey": 6, "requestApiVersion": 8})
"""What a controller in ZooKeeper mode tells a broker."""


@pytest.mark.parametrize("before", [True, False])
def test_requests_that_only_validate_ask_for_nothing_in_zookeeper_mode(*, before: bool) -> None:
    """Validations are not charged in ZooKeeper mode, which this batch or an earlier one shows, and are under KRaft."""
    tried = made("a", 20, 5, more={"validateOnly": True})
    done = made("b", 30, 6)
    assert resolved(tried, done) == [(20, 20, True), (30, 30, True)]
    expected = [(None, 0, True), (30, 30, True)]
    if before:
        ledger = MutationLedger()
        ledger.resolve(requests(UPDATE))
        assert reported(ledger.resolve(requests(tried, done)).requests) == expected
    else:
        assert resolved(tried, done, UPDATE) == expected
