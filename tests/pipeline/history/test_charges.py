"""What each request charges to which quota."""

from typing import Any

import pytest
from tests.pipeline.history.requests import START_MS, requests
from tests.strategies import HOSTILE

from quotascope.pipeline.history import HISTORY, history_of


def _one(**change: Any) -> dict[str, Any]:
    [row] = history_of(requests(change)).to_pylist()
    found: dict[str, Any] = row
    return found


def _charged(row: dict[str, Any]) -> dict[str, Any]:
    kinds = (
        "produce_bytes",
        "fetch_bytes",
        "thread_time_ms",
        "network_time_ms",
        "mutations",
    )
    return {kind: row[kind] for kind in kinds if row[kind] is not None}


def test_a_produce_charges_its_request() -> None:
    """A Produce charges its request's bytes and thread time, at the broker's decision."""
    row = _one(api_key=0, produce_bytes=812)
    assert _charged(row) == {
        "produce_bytes": 812,
        "thread_time_ms": 0.5,
        "network_time_ms": 0.25,
    }
    assert (row["timestamp"], row["completed"]) == (START_MS, START_MS + 5)
    assert (row["user"], row["client_id"], row["broker"]) == ("alice", "app", "1")


def test_a_fetch_charges_its_response() -> None:
    """A consumer's Fetch charges its response's bytes; a throttled one's size is unknown, and its wait is kept."""
    assert _charged(_one(api_key=1, fetch_bytes=4_000))["fetch_bytes"] == 4_000
    throttled = _one(api_key=1, throttle_ms=250)
    assert throttled["fetch_bytes"] is None
    assert throttled["throttle_ms"] == 250


def test_brokers_charge_nothing_to_each_other() -> None:
    """A follower's Fetch is left out; thread time of requests that brokers exempt is not charged, that of a Heartbeat is."""
    assert history_of(requests({"api_key": 1, "follower": True})).num_rows == 0
    assert _charged(_one(api_key=56)) == {}
    assert _charged(_one(api_key=12)) == {
        "thread_time_ms": 0.5,
        "network_time_ms": 0.25,
    }


@pytest.mark.parametrize("kind", ["partitions_created", "partitions_added", "partitions_deleted"])
def test_mutations_charge_partitions(kind: str) -> None:
    """Whatever a request does to partitions, their number is charged, and what was refused is distinguished from what was charged."""
    row = _one(api_key=19, **{kind: 30}, mutations_charged=12, mutation_timestamp=START_MS - 1, refused=True)
    assert (row["mutations"], row["mutations_charged"]) == (30, 12)
    assert (row["mutation_timestamp"], row["refused"]) == (START_MS - 1, True)


def test_unknown_mutations_are_not_guessed() -> None:
    """A DeleteTopics of topics whose partitions are unknown charges an unknown number, not none."""
    row = _one(api_key=20, mutations_known=False)
    assert row["mutations"] is None
    assert row["mutations_charged"] is None


def test_the_controllers_line_counts_once() -> None:
    """A controller's line of a forwarded request is left out, unless only it reports the mutations."""
    assert history_of(requests({"api_key": 19, "forwarded": True})).num_rows == 0
    kept = _one(api_key=19, forwarded=True, partitions_created=3, mutations_charged=3)
    assert kept["mutations"] == 3


def test_absent_values_are_what_quotas_take_them_for() -> None:
    """A request without client id counts for the empty one, and an answer without a throttle field did not throttle."""
    row = _one(client_id=None, throttle_ms=None, refused=None)
    assert (row["client_id"], row["throttle_ms"], row["refused"]) == ("", -1, False)


def test_connections_stay_apart() -> None:
    """Requests of one connection have one number, in any process; those of another have another."""
    ids = history_of(requests({}, {"connection": "other"}, {}))["connection"].to_pylist()
    assert ids[0] == ids[2] == -7_458_243_201_660_642_495
    assert ids[0] != ids[1]


def test_hostile_names_stay_as_they_are() -> None:
    """Names come through as they were sent."""
    made = history_of(requests(*({"user": name, "client_id": name} for name in HOSTILE)))
    assert made["user"].to_pylist() == list(HOSTILE)
    assert made["client_id"].to_pylist() == list(HOSTILE)


def test_no_requests_make_no_history() -> None:
    """Without requests there are no rows, of the same columns, each of which says what it means."""
    made = history_of(requests({}).slice(0, 0))
    assert made.schema == HISTORY
    assert made.num_rows == 0
    assert all((column.metadata or {}).get(b"description") for column in HISTORY)
