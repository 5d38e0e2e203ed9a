"""The time at which a streaming query has caught up follows from its micro-batches."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.builders.spark_events import query_progressed, query_started

from quotascope.spark_listener.events import KafkaOffsets, QueryIdle, QueryProgressed
from quotascope.spark_listener.job import CatchUp, Job
from quotascope.spark_listener.job.catching_up import Positions
from quotascope.spark_listener.job.queries import QueryStates

RECORDED = Path(__file__).parent / "throttled_offsets.json"
"""
A query that a broker with Kafka's default quota windows throttled for 3 minutes: when each micro-batch began and ended
(s), and its offsets.
"""


Batch = tuple[float, float, int | None, int] | tuple[float, float, int | None, int, int]


def batch(began: float, ended: float, end: int | None, newest: int, rows: int = 1) -> QueryProgressed:
    """Return a micro-batch; None for offsets that are not reported."""
    offsets = None if end is None else KafkaOffsets(end=end, newest=newest)
    return QueryProgressed(
        query="id",
        run="run",
        name="clicks",
        batch=0,
        began=began,
        phases={"triggerExecution": ended - began},
        rows=rows,
        offsets_behind=None,
        offsets=offsets,
    )


def after(*batches: Batch) -> CatchUp | None:
    positions = Positions()
    for values in batches:
        positions.add(batch(*values))
    return positions.catch_up()


def known(*batches: Batch) -> CatchUp:
    catch_up = after(*batches)
    assert catch_up is not None
    return catch_up


@pytest.mark.parametrize(
    ("per_batch", "added", "backlog", "seconds"),
    [
        (500, 0, 20_000, (20_000 - 10_000) / 100),
        (500, 250, 20_000, (20_000 + 19 * 250 - 10_000 + 250) / 50),
        (500, 500, 20_000, math.inf),
        (500, 600, 20_000, math.inf),
        (500, 500, 800, 0),
        (0, 0, 20_000, math.inf),
    ],
)
def test_time_to_catch_up(per_batch: int, added: int, backlog: int, seconds: float) -> None:
    """
    The time to catch up is the backlog by the rate that exceeds the producers'.

    It is infinite without such a rate.
    """
    catch_up = known(*((5 * n, 5 * n + 5, per_batch * (n + 1), backlog + added * n) for n in range(20)))
    assert catch_up.seconds == pytest.approx(seconds)
    assert (catch_up.read_per_second, catch_up.added_per_second) == pytest.approx((per_batch / 5, added / 5))


@pytest.mark.parametrize("remaining", [120, 90, 60])
def test_recorded_throttling(remaining: float) -> None:
    """The time is within 10 % of the real one, although brokers throttle in a saw-tooth of 11 s."""
    rows = json.loads(RECORDED.read_text())
    _, over, last_read, newest = rows[-1]
    rows_before = [row for row in rows if row[1] <= over - remaining]
    # the recording ends before the backlog does: what comes after its end is left out
    catch_up = known(*((*row[:3], row[3] - newest + last_read) for row in rows_before))
    assert catch_up.seconds == pytest.approx(over - rows_before[-1][1], rel=0.1)


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([], id="no micro-batch"),
        pytest.param([(0, 20, 100, 900)], id="one, which gives no rate"),
        pytest.param([(0, 3, 100, 900), (3, 6, 200, 900), (6, 14, 300, 900)], id="within the burst"),
        pytest.param([(0, 20, 100, 900), (20, 40, 200, 900), (40, 60, None, 0)], id="no offsets any more"),
        pytest.param([(0, 20, 100, 900), (20, 41, 200, 900)], id="less than two quota windows"),
        pytest.param([(0, 20, 900, 900), (20, 40, 5, 9)], id="the topic was created again"),
        pytest.param([(50, 80, 100, 900), (20, 40, 200, 900)], id="the clock was set"),
    ]
)  # fmt: skip
def test_unknown(batches: list[tuple[float, float, int | None, int]]) -> None:
    """The time to catch up is unknown if it could only be wrong."""
    assert after(*batches) is None


def test_burst_is_left_out() -> None:
    """A broker lets a quota window's worth through at once: the rates are of what comes after it."""
    lasting = [(10.0 * n + 2, 10.0 * n + 12, 2_100 + 1_000 * n, 9_000) for n in range(4)]
    assert known((0, 2, 1_100, 9_000), *lasting).read_per_second == pytest.approx(100)


def test_idle_time_is_no_rate() -> None:
    """A query is measured again after a progress without rows, as Spark 3.4 reports that there is nothing to read."""
    busy = [(5.0 * n, 5.0 * n + 5, 10 * n, 10 * n, 1) for n in range(10)]
    idle = [(10.0 * n, 10.0 * n + 1, 90, 90, 0) for n in range(5, 10)]
    again = [(100 + 5.0 * n, 105 + 5.0 * n, 100 + 50 * n, 9_000, 1) for n in range(10)]
    assert known(*busy, *idle, *again).read_per_second == pytest.approx(10)


def test_query_that_takes_all_there_is() -> None:
    """
    A query without maxOffsetsPerTrigger leaves nothing behind.

    It falls behind only if micro-batches get longer and longer.
    """
    assert known(*((n, n + 0.9, 10 * n, 10 * n) for n in range(40))).seconds == 0
    assert known((0, 20, 100, 100), (20, 60, 300, 300), (60, 140, 700, 700)).seconds == math.inf


def test_an_idle_query_has_no_backlog() -> None:
    """A query that took all there was in a long micro-batch, and had nothing to read since, keeps up."""
    queries = QueryStates()

    def catch_up(now: float) -> tuple[float, float]:
        progress = queries.snapshots(now)[0].catch_up
        assert progress is not None
        return progress.backlog, progress.seconds

    for n in range(12):
        queries.progressed(batch(5 * n, 5 * n + 5, 500 * n, 500 * n), 5 * n + 5)
    queries.progressed(batch(60, 100, 100_000, 100_000), 100)
    assert catch_up(100)[1] == math.inf
    queries.idle(QueryIdle(query="id", run="run", time=110.0), 110)
    assert catch_up(110) == (0, 0)


def test_old_rates_are_forgotten() -> None:
    """A limit that was raised shows within two minutes."""
    slow = [(5 * n, 5 * n + 5, 10 * n, 90_000) for n in range(100)]
    fast = [(500 + 5 * n, 505 + 5 * n, 1_000 + 500 * n, 90_000) for n in range(25)]
    assert known(*slow, *fast).read_per_second == pytest.approx(100)


def test_many_short_batches_take_little_space() -> None:
    """Micro-batches of a few ms are remembered for two minutes."""
    positions = Positions()
    for n in range(20_000):
        positions.add(batch(n / 100, n / 100 + 0.01, n, 10**6))
    assert len(positions._positions) < 130


def test_a_query_that_starts_again_is_measured_again() -> None:
    """A query that starts again is measured afresh, without the time in which it did not run."""
    job = Job("app")
    job.handle(query_started(run="run-1"))
    (query,) = job.snapshot().queries
    assert query.catch_up is None
    for run, hour in (("run-1", 1), ("run-2", 20)):
        for n in range(10):
            offsets = {"endOffset": {"a": {"0": 1_000 * hour + 50 * n}}, "latestOffset": {"a": {"0": 90_000}}}
            source = {"description": "KafkaV2[Subscribe[a]]", **offsets}
            took = {"triggerExecution": 5_000}
            job.handle(query_progressed(source, run=run, began=3_600 * hour + 5 * n, durationMs=took))
        (query,) = job.snapshot().queries
        assert query.catch_up is not None
        assert query.catch_up.read_per_second == pytest.approx(10)
