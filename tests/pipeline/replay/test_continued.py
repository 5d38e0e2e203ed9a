"""A replay in parts equals the replay of the whole, wherever it is cut."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders.requests import CREATE_TOPICS, PRODUCE, Request
from tests.pipeline.replay.histories import KEYS, candidate, history, quota_sets, requests
from tests.pipeline.replay.sums import SUMS, summed
from tests.strategies import EPOCH_MS, examples

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.replay import ReplaySettings, continued, replay
from quotascope.pipeline.replay.continued import Carried, Part, proceed
from quotascope.pipeline.replay.frame import Frame
from quotascope.pipeline.replay.plan import CandidateRules, ReplayPlan, plan_of
from quotascope.quotas.candidates import Candidate, MutationPolicy

SUMS += ["delayed_requests", "delayed_bytes", "refused_requests", "refused_mutations"]
SETTINGS = ReplaySettings(per_broker=True, releases={"2": KafkaRelease(3, 7)})
"""The second broker is an older one."""
HOUR_MS = 3_600_000
AFTER_MS = EPOCH_MS + 10_000 * HOUR_MS
"""After all requests."""


def in_parts(rows: pa.Table, cuts: list[int], candidates: list[Candidate], hold_ms: int = 100) -> list[Part]:
    """
    Replay rows in parts, in this order.

    State is saved and loaded in between, and the last part waits for nothing.
    """
    rules, parts, carried = CandidateRules(candidates), list[Part](), Carried()
    edges = sorted({0, *(cut % (len(rows) + 1) for cut in cuts), len(rows)})
    for begin, end in pairwise(edges):
        part = rows.slice(begin, end - begin)
        parts.append(proceed(carried, part, rules, SETTINGS, now_ms=AFTER_MS, hold_ms=hold_ms))
        carried = Carried.loaded(carried.saved())
    final = proceed(carried, rows.slice(0, 0), rules, SETTINGS, now_ms=AFTER_MS, hold_ms=0)
    assert final.waiting == len(carried.requests) == 0
    return [*parts, final]


long_gaps = requests.map(lambda request: replace(request, after_ms=request.after_ms + HOUR_MS))
dense = requests.map(lambda request: replace(request, user="alice", client_id="app", after_ms=request.after_ms % 400))
refused = dense.map(
    lambda request: replace(request, api_key=CREATE_TOPICS, withheld=True, granted=request.cost % 3, throttle_ms=9)
)
shapes = st.sampled_from((WindowConfig(), WindowConfig(samples=2, window_seconds=1)))
tried = st.builds(
    lambda quotas, policy, shape: candidate(quotas, mutation_policy=policy, controller_windows=shape, windows=shape),
    quota_sets,
    st.sampled_from(MutationPolicy),
    shapes
)  # fmt: skip


ALL_TYPES = {QuotaEntity(DEFAULT, None): dict(zip(KEYS, (9_000.0, 9_000.0, 60.0, 2_000.0), strict=True))}
DAY_MS = 86_400_000
EVERY = [candidate(ALL_TYPES, mutation_policy=policy) for policy in MutationPolicy]


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.one_of(*[dense] * 12, requests, requests, refused, refused, long_gaps), min_size=20, max_size=60),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
    st.lists(tried, min_size=0, max_size=2)
)  # fmt: skip
def test_parts_are_the_whole(made: list[Request], cuts: list[int], candidates: list[Candidate]) -> None:
    """
    A replay in parts equals one of the whole, under any limits.

    Lines come in the order of their completion, some entities rest until brokers forget them.
    """
    # after a day without a request an entity is forgotten, and with it what is left of its mute
    assume(sum(request.after_ms for request in made) < DAY_MS)
    candidates = [replace(tried, name=str(n)) for n, tried in enumerate([*EVERY, *candidates])]
    rows = history(made)
    arrived = rows.take(pc.sort_indices(rows, [("completed", "ascending")]))
    parts = in_parts(arrived, cuts, candidates)
    assert sum(part.late for part in parts) == 0
    assert sum(part.decided for part in parts) == len(rows)
    whole = replay(rows, candidates, settings=SETTINGS)
    assert summed([part.results for part in parts]) == summed([whole])


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None)
@given(st.lists(requests, min_size=2, max_size=30), st.integers(1, 29), tried)
def test_a_clock_that_goes_back(made: list[Request], cut: int, tried_one: Candidate) -> None:
    """Requests that come after their broker's time are decided at once, at that time, and all are counted."""
    rows = history(made)
    cut %= len(rows)
    late = pa.concat_tables([rows.slice(cut), rows.slice(0, cut)])
    parts = in_parts(late, [len(rows) - cut], [tried_one], hold_ms=0)
    reached: dict[str, int] = {}
    for row in rows.slice(cut).to_pylist():
        reached[row["broker"]] = max(reached.get(row["broker"], 0), row["timestamp"])
    behind = [row for row in rows.slice(0, cut).to_pylist() if row["timestamp"] <= reached.get(row["broker"], -1)]
    assert sum(part.late for part in parts) == len(behind)
    assert sum(part.decided for part in parts) == len(rows)
    charged = summed([part.results for part in parts])
    whole = summed([replay(rows, [tried_one], settings=SETTINGS)])
    assert {key: figures[:2] for key, figures in charged.items()} == {
        key: figures[:2] for key, figures in whole.items()
    }


def proceeded(*rows_and_times: tuple[pa.Table, int], bytes_s: float = 1_000.0) -> list[Part]:
    """Return the parts of rows that come at some ms after `EPOCH_MS`, under a producer quota and a hold of 10 s."""
    rules = CandidateRules([candidate({QuotaEntity(DEFAULT, None): {"producer_byte_rate": bytes_s}})])
    carried = Carried()
    return [
        proceed(carried, rows, rules, SETTINGS, now_ms=EPOCH_MS + time_ms, hold_ms=10_000)
        for rows, time_ms in rows_and_times
    ]


KB = Request(api_key=PRODUCE, cost=1_000)
NOTHING = history([])


def test_a_silent_broker_waits_no_longer() -> None:
    """The last requests of a silent broker are decided while others go on; a broker far behind keeps its own time."""
    requests_made = history([KB, replace(KB, broker="2", after_ms=60_000), KB])
    parts = proceeded(
        (requests_made[:2], 0), (NOTHING, 9_999), (requests_made[2:], 11_000), (NOTHING, 21_000), bytes_s=1.0
    )
    assert [(part.decided, part.late) for part in parts] == [(0, 0), (0, 0), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("read_ms", "decided"),
    [
        ([60_000 * minute for minute in range(5)], [0, 1, 1, 1, 1]),
        ([HOUR_MS + 1_000 * n for n in range(5)], [0, 1, 0, 2, 1]),
    ],
    ids=["read at once", "read late"],
)
def test_a_clock_that_is_wrong_for_a_moment(read_ms: list[int], decided: list[int]) -> None:
    """
    A line of another century is decided when it comes, counts as late, and does not end the time of its broker.

    In a log that is read late it gets the time that its broker has by the log, not the time of now, after which all
    that follow would come late.
    """
    times = (0, 60_000, 876_000 * HOUR_MS, 180_000, 240_000)
    rows = [history([replace(KB, after_ms=after_ms)]) for after_ms in times]
    parts = proceeded(*zip(rows, read_ms, strict=True))
    assert [part.late for part in parts] == [0, 0, 1, 0, 0]
    assert [part.decided for part in parts] == decided
    assert not any(row["throttled_requests"] for part in parts for row in part.results.to_pylist())


def test_a_clock_that_is_ahead_makes_no_other_broker_late() -> None:
    """A broker that was silent while another's clock was an hour ahead goes on by its own clock."""
    rows_and_times = []
    for minute in range(5):
        request = replace(KB, after_ms=60_000 * minute)
        ahead = replace(KB, broker="2", after_ms=HOUR_MS)
        rows = [request, ahead] if minute in (0, 4) else [replace(ahead, after_ms=HOUR_MS + request.after_ms)]
        rows_and_times.append((history(rows), request.after_ms))
    parts = proceeded(*rows_and_times, (NOTHING, 4 * 60_000 + 10_000))
    assert sum(part.late for part in parts) == 0
    assert sum(part.decided for part in parts) == 7


def test_a_hold_lasts_where_no_broker_logs_anything() -> None:
    """Requests after a pause of all brokers may be as old as `hold_ms`, also if one of the brokers is ahead."""
    both = history([KB, replace(KB, broker="2", after_ms=HOUR_MS)])
    parts = proceeded((both, 0), (NOTHING, 20_000), (history([replace(KB, after_ms=15_000)]), 21_000))
    assert [part.late for part in parts] == [0, 0, 0]


@pytest.mark.parametrize(("behind_ms", "decided"), [(10_000, 0), (10_001, 1)])
def test_a_broker_holds_others_up_while_it_is_near(behind_ms: int, decided: int) -> None:
    """A broker that is behind by the hold at most keeps the others at its time; beyond that they go on."""
    requests_made = history([KB, replace(KB, broker="2", after_ms=5_000), replace(KB, after_ms=behind_ms)])
    (part,) = proceeded((requests_made, 0))
    assert part.decided == decided


@pytest.mark.parametrize(
    ("made", "key", "limit"),
    [
        pytest.param(
            [
                Request(request_us=1_000, network_us=900_000, network_after_ms=500),
                Request(after_ms=300, request_us=1_000),
                Request(after_ms=600, request_us=1_000),
            ],
            "request_percentage", 5.0, id="network time that is charged after the cut"
        ),
        pytest.param(
            [
                Request(after_ms=150, api_key=CREATE_TOPICS, cost=30),
                Request(after_ms=150, api_key=CREATE_TOPICS, cost=50, wait_ms=200),
                Request(after_ms=50),
            ],
            "controller_mutation_rate", 1.0, id="a mutation that is decided after the cut and charged before"
        ),
        pytest.param(
            [
                Request(broker="2", api_key=CREATE_TOPICS, cost=5),
                Request(after_ms=5_000, api_key=CREATE_TOPICS, cost=50),
                Request(after_ms=300, api_key=CREATE_TOPICS, cost=50),
            ],
            "controller_mutation_rate", 1.0, id="a mutation of a broker that is behind the others"
        ),
    ]
)  # fmt: skip
def test_what_lies_across_a_cut(made: list[Request], key: str, limit: float) -> None:
    """A mutation across a cut is charged in its turn."""
    limits = candidate({QuotaEntity(DEFAULT, None): {key: limit}})
    rows = history(made)
    whole = summed([replay(rows, [limits], settings=SETTINGS)])
    for cut in (1, 2, 3):
        parts = in_parts(rows, [cut], [limits])
        assert summed([part.results for part in parts]) == whole
    assert any(figures[2] + figures[8] for figures in whole.values())


def test_decided_requests_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame of the requests that are decided has the files and positions of these alone."""
    frames: list[Frame] = []

    def noted(frame: Frame, *arguments: Any) -> ReplayPlan:
        frames.append(frame)
        return plan_of(frame, *arguments)

    monkeypatch.setattr(continued, "plan_of", noted)
    rows = history([Request(after_ms=number % 2 * 150) for number in range(10)])
    in_parts(rows, [5], EVERY)
    assert len(frames) > 1
    for frame in frames:
        assert len(frame.files) == len(frame.positions) == len(frame.requests.times)
    positions = [position for frame in frames for position in frame.positions.tolist()]
    assert sorted(positions) == rows["position"].to_pylist()
