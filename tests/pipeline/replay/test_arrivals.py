"""When requests come under candidates."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.replay.histories import (
    CREATE_TOPICS,
    FETCH,
    METADATA,
    Request,
    candidate,
    history,
    quota_sets,
    requests,
)

from quotascope.metrics import QuotaEntity
from quotascope.pipeline.replay import Mode, replay
from quotascope.pipeline.replay.closed_loop import NEVER
from quotascope.pipeline.replay.results import lateness


def numbered(made: list[Request]) -> pa.Table:
    """A history whose positions are the numbers of its rows."""
    rows = history(made)
    place = rows.column_names.index("position")
    return rows.set_column(place, "position", pa.array(range(len(rows)), pa.int64()))


@given(made=st.lists(requests.map(lambda made: replace(made, wait_ms=0)), min_size=1, max_size=25), quotas=quota_sets)
def test_requests_come_as_the_closed_loop_moves_them(made: list[Request], quotas: Any) -> None:
    """The latest of each entity is as late as the replay says, and those that never come are not sent."""
    rows, tried = numbered(made), [candidate(quotas)]
    late = lateness(rows, tried, Mode.CLOSED_LOOP, len(rows))[0]
    for found in replay(rows, tried, Mode.CLOSED_LOOP).to_pylist():
        own = [n for n, each in enumerate(made) if (each.user, each.client_id) == (found["user"], found["client_id"])]
        assert found["late_ms"] == max(0, *late[own].tolist())
        if found["quota_type"] == "request":
            timed = [n for n in own if made[n].request_us is not None]
            never = (late[timed] == NEVER).sum()
            # a large Fetch comes in parts, and a refused mutation again: of these some may be left
            partly = sum(made[n].api_key in {FETCH, CREATE_TOPICS} for n in timed)
            assert never <= found["unsent_requests"] <= never + partly


@pytest.mark.parametrize(("limit", "kept"), [(20.0, 1.0), (5.0, 0.5), (1.0, 0.1)])
def test_what_is_above_a_limit_never_comes_in_an_open_loop(limit: float, kept: float) -> None:
    """Of a client at 10 percent of a thread, as many requests as its limit allows, evenly; of others all."""
    busy = Request(after_ms=5, api_key=METADATA, request_us=1_000, network_us=0)
    idle = replace(busy, user="bob")
    rows = numbered([busy, idle] * 5_000)
    quotas = {QuotaEntity("alice"): {"request_percentage": limit}}
    late = lateness(rows, [candidate({}), candidate(quotas)], Mode.OPEN_LOOP, len(rows))
    assert (late[0] == 0).all()
    assert (late[1][1::2] == 0).all()
    coming = late[1][4_000::2] == 0
    assert coming.mean() == pytest.approx(kept, abs=0.01)
    assert coming[: len(coming) // 2].mean() == pytest.approx(kept, abs=0.01)
