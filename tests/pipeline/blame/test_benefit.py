"""What candidates save others, from tables of requests."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.blame.queues import AGGRESSOR, BEGIN_MS, CONSTANT, logged, saturated, written
from tests.pipeline.table.rows import append

from quotascope.metrics import QuotaEntity
from quotascope.pipeline.blame.benefit import Benefit, benefit_of
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.blame import blame
from quotascope.pipeline.table import Table
from quotascope.pipeline.table.table import run_here
from quotascope.quotas import Entity, QuotaSet
from quotascope.quotas.candidates import Candidate


def candidates(*limits: float) -> list[Candidate]:
    """Without a quota, and with these request quotas of the aggressor."""
    quotas: list[dict[Entity, dict[str, float]]] = [{}]
    quotas += [{QuotaEntity(AGGRESSOR): {"request_percentage": each}} for each in limits]
    return [Candidate(name=str(n), quotas=QuotaSet(each)) for n, each in enumerate(quotas)]


def found(folder: str, mode: Mode = Mode.OPEN_LOOP, threads: int | None = None) -> Benefit:
    """What no quota and three ones save."""
    return benefit_of(folder, candidates(100, 20, 1), mode, run_here, threads=threads)


def test_a_lower_limit_of_one_client_saves_the_others_more(tmp_path: Path) -> None:
    """Without a throttle nothing is saved."""
    folder = written(tmp_path, logged(60))
    opened, closed = (found(folder, mode) for mode in Mode)
    (queue,) = opened.brokers
    assert (queue.threads, queue.refusal) == (1, None)
    assert blame(folder).plan.threads == [1]
    none, loose, strict, least = opened.saved.values()
    assert none == loose == 0
    assert strict is not None
    assert least is not None
    assert 0.5 < strict < least < 1
    later = closed.saved["2"]
    assert later is not None
    assert 0.2 < later < 1
    assert opened.notes == (
        "Error of the simulated queue times against the log: broker 1 (1 handler thread) +0 %.",
        "The number of handler threads is the most that the log shows busy in a second; --io-threads sets num.io.threads.",
    )


@pytest.mark.parametrize(
    ("constant", "threads", "why"),
    [
        ({"queue_time_ms": None}, None, "The wait is unknown: the log has no queue times; ingest it with this release."),
        ({"api_key": 63}, None, "The wait is unknown: there is no request of a broker;"),
        ({}, 9, "Left out of the wait: a queue with 9 handler threads does not explain the queue times of broker 1: its error is -"),
    ]
)  # fmt: skip
def test_nothing_is_predicted_where_queue_times_are_unknown_or_not_explained(
    tmp_path: Path, constant: dict[str, Any], threads: int | None, why: str
) -> None:
    """The answer is unknown, and says why; never zero."""
    rows = logged(20)
    kept = rows.drop_columns([name for name in constant if name in rows.column_names])
    answer = found(written(tmp_path, kept, **constant), threads=threads)
    assert set(answer.saved.values()) == {None}
    assert answer.notes[0].startswith(why)


def test_clients_that_wait_for_answers_are_explained_at_full_load(tmp_path: Path) -> None:
    """With arrivals as logged, what the log lacks would add up from request to request; a client sends its next one later instead."""
    (queue,) = found(written(tmp_path, saturated(20_000))).brokers
    assert queue.logged_us / queue.requests == pytest.approx(4_500, rel=0.1)
    assert abs(queue.error) < 0.1
    assert queue.refusal is None


def test_a_node_that_is_a_controller_alone_is_no_broker(tmp_path: Path) -> None:
    """It has no queue of clients to be explained; with no other node, no quota was tried in vain."""
    folder = written(tmp_path, logged(20))
    controller = {
        **CONSTANT,
        "broker": "9",
        "listener": "CONTROLLER",
        "api_key": 63,
        "user": "",
        "queue_time_ms": 0.1,
        "thread_time_ms": 1.0,
    }
    times = dict.fromkeys(("timestamp", "completed"), BEGIN_MS + 1000)
    row = pa.Table.from_pylist([controller | times], REQUESTS)
    append(Table.open(f"{folder}/requests", schema=REQUESTS), "controller", row)
    answer = found(folder)
    assert [each.broker for each in answer.brokers] == ["1"]
    assert "broker 9" not in " ".join(answer.notes)


def test_a_history_without_requests_says_nothing_about_waits(tmp_path: Path) -> None:
    """The tables of an earlier release may lack them, and days may have lost them alone."""
    assert found(str(tmp_path)).brokers == ()
    folder = written(tmp_path, logged(5))
    Table.open(f"{folder}/requests", schema=REQUESTS).drop_before(date(2030, 1, 1))
    assert found(folder).notes == (
        "The wait is unknown: there is no request of a broker; ingest brokers' logs with this release.",
    )
