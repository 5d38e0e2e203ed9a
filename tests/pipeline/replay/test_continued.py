"""A replay in parts equals the replay of the whole, wherever it is cut."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.replay.histories import candidate, history, quota_sets, requests
from tests.strategies import EPOCH_MS

from quotascope.metrics import WindowConfig
from quotascope.pipeline.candidates import Candidate, MutationPolicy
from quotascope.pipeline.replay import RESULTS, ReplaySettings, replay
from quotascope.pipeline.replay.continued import Carried, Part, proceed
from quotascope.pipeline.replay.plan import CandidateRules

KEY = ["candidate", "broker", "user", "client_id", "quota_type"]
SUMS = ["requests", "amount", "throttled_requests", "throttled_ms", "muted_ms", "active_ms", "delayed_requests", "delayed_bytes", "rejected_requests", "rejected_mutations"]  # fmt: skip
SETTINGS = ReplaySettings(per_broker=True)


def summed(parts: list[pa.Table]) -> dict[tuple[Any, ...], list[Any]]:
    """By key what the parts add up to, and the longest throttle; keys without a request that charged the quota left out."""
    rows = pa.concat_tables([RESULTS.empty_table(), *parts])
    sums: Any = rows.group_by(KEY).aggregate([*((name, "sum") for name in SUMS), ("longest_throttle_ms", "max")])  # fmt: skip
    return {
        tuple(row[name] for name in KEY): [row[f"{name}_sum"] if name != "amount" else pytest.approx(row["amount_sum"]) for name in SUMS] + [row["longest_throttle_ms_max"]]
        for row in sums.to_pylist()
        if row["requests_sum"]
    }  # fmt: skip


def in_parts(
    rows: pa.Table, cuts: list[int], candidates: list[Candidate], hold_ms: int
) -> list[Part]:
    """Replayed in parts of rows that come in this order; what is carried is saved and loaded in between, and the last one waits for nothing."""
    rules, parts, carried = CandidateRules(candidates), [], Carried()
    edges = sorted({0, *(cut % (len(rows) + 1) for cut in cuts), len(rows)})
    for begin, end in zip(edges, edges[1:], strict=False):
        part = rows.slice(begin, end - begin)
        parts.append(proceed(carried, part, rules, SETTINGS, now_ms=0, hold_ms=hold_ms))
        carried = Carried.loaded(carried.saved())
    last = proceed(carried, rows.slice(0, 0), rules, SETTINGS, now_ms=0, hold_ms=0)
    assert last.waiting == len(carried.requests) == 0
    return [*parts, last]


policies = st.sampled_from(MutationPolicy)
shapes = st.sampled_from((WindowConfig(), WindowConfig(samples=2, window_seconds=1)))
tried = st.builds(
    lambda quotas, policy, shape: candidate(quotas, mutation_policy=policy, controller_windows=shape, windows=shape),
    quota_sets, policies, shapes,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(requests, min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.lists(tried, min_size=1, max_size=3),
)
def test_parts_are_the_whole(
    given_requests: list[Any], cuts: list[int], candidates: list[Candidate]
) -> None:
    """Whatever is limited and however: the lines come in the order of their completion, and the state is saved in between."""
    candidates = [replaced(each, f"c{number}") for number, each in enumerate(candidates)]  # fmt: skip
    rows = history(given_requests)
    arrived = rows.take(pc.sort_indices(rows, [("completed", "ascending")]))
    parts = in_parts(arrived, cuts, candidates, hold_ms=100)
    assert sum(part.late for part in parts) == 0
    assert sum(part.decided for part in parts) == len(rows)
    whole = replay(rows, candidates, settings=SETTINGS)
    assert summed([part.results for part in parts]) == summed([whole])


def replaced(given_candidate: Candidate, name: str) -> Candidate:
    """The same under another name."""
    from dataclasses import replace

    return replace(given_candidate, name=name)
