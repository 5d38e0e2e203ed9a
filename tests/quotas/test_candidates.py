"""A file of candidates and windows on a command line are read."""

from pathlib import Path

import pytest
from tests.quotas.examples import ALICE, CONSUME, DEFAULT_CLIENT, DEFAULT_USER, PERCENT, PRODUCE

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate, MutationPolicy, read_candidates, windows_of_text
from quotascope.quotas.errors import BadWindows

FULL = """
windows: {num: 21, size-seconds: 2}
controller-windows: {num: 5}
quotas:
  - {user: <default>, request_percentage: 2}
  - {user: alice, producer_byte_rate: 100000, consumer_byte_rate: 5}
candidates:
  - name: as now
  - name: half
    mutations: burst-spreading
    quotas: [{user: alice, producer_byte_rate: 50000}]
    remove: [{user: <default>, keys: [request_percentage]}]
grid:
  - {name: alice, user: alice, key: producer_byte_rate, from: 1000, to: 100000, steps: 3}
  - {user: alice, client-id: app, key: request_percentage, values: [0.5, 1]}
  - {user: bob, key: controller_mutation_rate, from: 1, to: 3, steps: 3, scale: linear}
"""


def read(folder: Path, text: str) -> tuple[Candidate, ...]:
    path = folder / "candidates.yaml"
    path.write_text(text)
    return read_candidates(path)


def test_candidates_start_from_the_quotas_of_the_file(tmp_path: Path) -> None:
    """The quotas that all candidates share are written once; a candidate sets, changes and removes."""
    current, half, *_ = read(tmp_path, FULL)
    assert current.quotas == {DEFAULT_USER: {PERCENT: 2.0}, ALICE: {PRODUCE: 100_000.0, CONSUME: 5.0}}
    assert half.quotas == {ALICE: {PRODUCE: 50_000.0, CONSUME: 5.0}}
    assert current.mutation_policy is MutationPolicy.TOKEN_BUCKET
    assert half.mutation_policy is MutationPolicy.BURST_SPREADING
    assert current.windows == half.windows == WindowConfig(samples=21, window_seconds=2)
    assert current.controller_windows == WindowConfig(samples=5)
    assert current.tables()[QuotaType.PRODUCE].bound_of("alice", "") == 100_000.0


def test_a_candidate_can_start_from_other_quotas(tmp_path: Path) -> None:
    """The quotas that the candidate sets and removes stay the same; a grid sets its one key."""
    every = read(tmp_path, FULL)
    bob = QuotaEntity("bob")
    base = QuotaSet({DEFAULT_USER: {PERCENT: 9.0}, bob: {PRODUCE: 7.0}})
    current, half, first_of_grid, *_ = (candidate.over(base) for candidate in every)
    assert current.quotas == base
    assert half.quotas == {bob: base[bob], ALICE: {PRODUCE: 50_000.0}}
    assert first_of_grid.quotas == {**base, ALICE: {PRODUCE: 1000.0}}
    assert all(candidate.based for candidate in every)
    (alone,) = read(tmp_path, "candidates: [{name: x}]")
    assert not alone.based


def test_grids(tmp_path: Path) -> None:
    """
    A grid sweeps one key of one entity.

    Listed values, or steps between two, by equal ratios or equal differences.
    """
    base, _, *points = read(tmp_path, FULL)
    assert [point.name for point in points] == [
        "alice producer_byte_rate=1000",
        "alice producer_byte_rate=10000",
        "alice producer_byte_rate=100000",
        "request_percentage=0.5",
        "request_percentage=1",
        "controller_mutation_rate=1",
        "controller_mutation_rate=2",
        "controller_mutation_rate=3",
    ]
    assert points[1].quotas == {**base.quotas, ALICE: {PRODUCE: 10_000.0, CONSUME: 5.0}}
    assert points[3].quotas == {**base.quotas, QuotaEntity("alice", "app"): {PERCENT: 0.5}}


def test_a_file_of_quotas_is_one_candidate(tmp_path: Path) -> None:
    """A file of `quotascope quotas export` can be replayed unchanged."""
    (only,) = read(tmp_path, "quotas:\n  - {client-id: <default>, producer_byte_rate: 7}\n")
    assert only.name == "quotas"
    assert only.quotas == {DEFAULT_CLIENT: {PRODUCE: 7.0}}


def test_windows_of_a_command_line() -> None:
    """The text has the values of `quota.window.num` and `quota.window.size.seconds`."""
    assert windows_of_text("21x2") == WindowConfig(samples=21, window_seconds=2)


@pytest.mark.parametrize("text", ["", "11", "11x", "x1", "-1x1", "1.5x1", "٣x1", "1x1x1", "9" * 400 + "x1"])
def test_what_is_no_windows_is_refused(text: str) -> None:
    """The message shows right ones, and no more of wrong ones than fits."""
    with pytest.raises(BadWindows, match=r"such as 11x1, not .{,70}$"):
        windows_of_text(text)


@pytest.mark.parametrize("text", ["0x1", "11x0", "10001x1", "11x86401"])
def test_windows_that_cannot_be_are_refused(text: str) -> None:
    """Kafka takes no windows below 1, and a replay holds all of them in memory."""
    with pytest.raises(BadWindows):
        windows_of_text(text)
