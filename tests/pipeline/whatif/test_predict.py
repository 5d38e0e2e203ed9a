"""What single requests would have been told is what brokers of the engine tell them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.kernels.ways import WAYS, kernels
from tests.pipeline.whatif.brokers import Cluster, Verdict
from tests.pipeline.whatif.histories import (
    CREATE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
    Request,
    candidate,
    history,
    quota_sets,
    requests,
)
from tests.strategies import examples

from quotascope.metrics import QuotaEntity
from quotascope.pipeline.candidates import Candidate
from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.whatif import PREDICTIONS, predict

SIZES = ("produce_bytes", "fetch_bytes", "mutations")


def by_engine(table: pa.Table, chosen: Candidate) -> list[Verdict]:
    """The verdicts of brokers that meet the requests as logged."""
    cluster = Cluster(chosen)
    rows = table.to_pylist()
    verdicts = [Verdict(0, 0, None)] * len(rows)  # type: ignore[arg-type]
    for at_ms, kind, number in sorted(_events(rows)):
        row = rows[number]
        if kind:
            cluster.network(row, at_ms)
        else:
            size = next((row[name] for name in SIZES if row[name] is not None), 0)
            verdicts[number] = _decided(cluster, row, size)
    return verdicts


def _events(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    decisions = [(row["timestamp"], 0, number) for number, row in enumerate(rows)]
    return decisions + [
        (row["completed"], 1, number) for number, row in enumerate(rows)
    ]


def _decided(cluster: Cluster, row: Mapping[str, Any], size: int) -> Verdict:
    now_ms = row["timestamp"]
    charged_ms = row["mutation_timestamp"] or now_ms
    return cluster.decide(row, size, now_ms, wait_ms=now_ms - charged_ms)


@pytest.mark.parametrize("way", WAYS)
@given(
    made=st.lists(requests, min_size=1, max_size=40),
    quotas=quota_sets,
    wait_ms=st.sampled_from((0, 20)),
)
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
def test_equals_the_engine(
    way: str, made: list[Request], quotas: Any, wait_ms: int
) -> None:
    """Every throttle, of every type, is that of real quota managers: rules of all levels, brokers, shared sensors."""
    table = history([replace(request, wait_ms=wait_ms) for request in made])
    chosen = candidate(quotas)
    expected = by_engine(table, chosen)
    with kernels(way):
        found = predict(table, chosen)
    assert found.schema == PREDICTIONS
    for row, verdict in zip(found.to_pylist(), expected, strict=True):
        kind = verdict.decision.throttled_by
        throttles = verdict.own_ms, verdict.request_ms
        assert (row["own_ms"], row["request_ms"]) == throttles
        assert row["throttle_ms"] == max(0, verdict.decision.response_ms)
        assert row["throttled_by"] == (kind and kind.label)
        assert row["rejected"] == verdict.refused


def test_keeps_the_order_of_rows() -> None:
    """Rows in any order are answered in that order, and measured in the order of time."""
    made = [
        Request(after_ms=100, user=user, api_key=PRODUCE, cost=90_000, broker=broker)
        for _ in range(20)
        for user in ("alice", "bob")
        for broker in ("1", "2")
    ]
    table = history(made)
    mixed = pa.array([(number * 37) % len(made) for number in range(len(made))])
    chosen = candidate({QuotaEntity("alice"): {"producer_byte_rate": 100_000.0}})
    straight = predict(table, chosen).column("own_ms")
    found = predict(table.take(mixed), chosen)
    assert found.column("own_ms") == straight.take(mixed)
    assert found.column("row").to_pylist() == list(range(len(made)))
    assert any(straight.to_pylist())


def test_fetch_answered_empty_has_the_size_of_the_next() -> None:
    """A Fetch whose size the log lost is charged what its connection's next one brought, and given back."""
    big, small = 4_000_000, 1_000
    fetch = Request(after_ms=2_000, api_key=FETCH, request_us=10)
    made = [
        fetch,
        replace(fetch, withheld=True, throttle_ms=7, connection=1),
        replace(fetch, cost=small, connection=2),
        replace(fetch, cost=big, connection=1),
        replace(fetch, withheld=True, throttle_ms=7, connection=1),
    ]
    chosen = candidate({QuotaEntity("alice"): {"consumer_byte_rate": 100_000.0}})
    found = predict(history(made), chosen)
    own = found.column("own_ms").to_pylist()
    # 4 MB over 10 s: what was given back is in no later measurement, and without a next Fetch nothing is known.
    assert own == [0, 30_000, 0, 30_010, 30_010]
    assert found.column("quota_type").to_pylist() == ["fetch"] * 5


def test_refused_mutation_of_the_log_is_not_charged() -> None:
    """A mutation that the log shows as refused is checked only: its retry is in the log, too."""
    create = Request(api_key=CREATE_TOPICS, cost=100)
    refused = replace(create, withheld=True)
    chosen = candidate({QuotaEntity("alice"): {"controller_mutation_rate": 1.0}})
    found = predict(history([create, refused, refused, create]), chosen)
    assert found.column("rejected").to_pylist() == [False, True, True, True]
    assert found.column("own_ms").to_pylist() == [0, 89_000, 89_000, 89_000]
    higher = candidate({QuotaEntity("alice"): {"controller_mutation_rate": 10.0}})
    again = predict(history([create, refused, refused, create]), higher)
    assert again.column("rejected").to_pylist() == [False] * 4


def test_without_rules_nothing_is_throttled() -> None:
    """Without rules, or without rows, there is nothing to say."""
    nobody = candidate({})
    made = [Request(api_key=METADATA, request_us=10_000_000)]
    assert predict(history(made), nobody).column("throttle_ms").to_pylist() == [0]
    assert predict(history([]), nobody) == PREDICTIONS.empty_table()


def test_missing_columns() -> None:
    """A history of another making is refused by the names of what it lacks."""
    table = history([Request()]).drop_columns(["refused", "connection"])
    with pytest.raises(PipelineError, match="lacks the columns connection, refused"):
        predict(table, candidate({}))
