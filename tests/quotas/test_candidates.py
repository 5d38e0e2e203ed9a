"""What a file of candidates says, and what is said about a wrong one."""

from pathlib import Path

import pytest

from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, WindowConfig
from quotascope.quotas import InvalidQuotas, QuotaSet
from quotascope.quotas.candidates import BadWindows, MutationPolicy, read_candidates, windows_of_text

ALICE = QuotaEntity("alice")
BOB = QuotaEntity("bob")
EVERY_USER = QuotaEntity(DEFAULT)
FULL = """
windows: {num: 21, size-seconds: 2}
controller-windows: {num: 5}
quotas:
  - user: <default>
    request_percentage: 2
  - user: alice
    producer_byte_rate: 100000
    consumer_byte_rate: 5
candidates:
  - name: as now
  - name: half
    mutations: burst-spreading
    quotas:
      - {user: alice, producer_byte_rate: 50000}
    remove:
      - {user: <default>, keys: [request_percentage]}
grid:
  - {name: alice, user: alice, key: producer_byte_rate, from: 1000, to: 100000, steps: 3}
  - {user: alice, client-id: app, key: request_percentage, values: [0.5, 1]}
  - {user: bob, key: controller_mutation_rate, from: 1, to: 3, steps: 3, scale: linear}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "candidates.yaml"
    path.write_text(text)
    return path


def problems_of(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidQuotas) as caught:
        read_candidates(written(folder, text))
    assert caught.value.subject in str(caught.value)
    return caught.value.problems


def test_candidates_start_from_the_quotas_of_the_file(tmp_path: Path) -> None:
    """What all have in common is written once; a candidate sets, changes and removes."""
    now, half, *_ = read_candidates(written(tmp_path, FULL))
    assert now.quotas == {
        EVERY_USER: {"request_percentage": 2.0},
        ALICE: {"producer_byte_rate": 100_000.0, "consumer_byte_rate": 5.0},
    }
    assert half.quotas == {ALICE: {"producer_byte_rate": 50_000.0, "consumer_byte_rate": 5.0}}
    policies = now.mutation_policy, half.mutation_policy
    assert policies == (MutationPolicy.TOKEN_BUCKET, MutationPolicy.BURST_SPREADING)
    windows = WindowConfig(samples=21, window_seconds=2), WindowConfig(samples=5)
    assert (now.windows, now.controller_windows) == windows
    assert now.tables()[QuotaType.PRODUCE].bound_of("alice", "") == 100_000.0


def test_a_candidate_can_start_from_other_quotas(tmp_path: Path) -> None:
    """What it sets and removes stays the same; a grid sets its one key."""
    every = read_candidates(written(tmp_path, FULL))
    base = QuotaSet({EVERY_USER: {"request_percentage": 9.0}, BOB: {"producer_byte_rate": 7.0}})
    now, half, first, *_ = (candidate.over(base) for candidate in every)
    assert now.quotas == base
    assert half.quotas == {BOB: base[BOB], ALICE: {"producer_byte_rate": 50_000.0}}
    assert first.quotas == {**base, ALICE: {"producer_byte_rate": 1000.0}}
    assert all(candidate.based for candidate in every)
    (alone,) = read_candidates(written(tmp_path, "candidates: [{name: x}]"))
    assert not alone.based


def test_grids(tmp_path: Path) -> None:
    """A grid sweeps one key of one entity: listed values, or steps between two, by equal ratios or equal differences."""
    found = {one.name: one.quotas for one in read_candidates(written(tmp_path, FULL))}
    assert list(found)[2:] == [
        "alice producer_byte_rate=1000",
        "alice producer_byte_rate=10000",
        "alice producer_byte_rate=100000",
        "request_percentage=0.5",
        "request_percentage=1",
        "controller_mutation_rate=1",
        "controller_mutation_rate=2",
        "controller_mutation_rate=3",
    ]
    alice = {"producer_byte_rate": 10_000.0, "consumer_byte_rate": 5.0}
    assert found["alice producer_byte_rate=10000"][ALICE] == alice
    app = QuotaEntity("alice", "app")
    assert found["request_percentage=0.5"][app] == {"request_percentage": 0.5}
    assert found["request_percentage=0.5"][EVERY_USER] == {"request_percentage": 2.0}


def test_a_file_of_quotas_is_one_candidate(tmp_path: Path) -> None:
    """What `quotascope quotas export` writes can be replayed as it is."""
    text = "quotas:\n  - {client-id: <default>, producer_byte_rate: 7}\n"
    (only,) = read_candidates(written(tmp_path, text))
    assert only.name == "quotas"
    assert only.quotas == {QuotaEntity(None, DEFAULT): {"producer_byte_rate": 7.0}}


def test_all_problems_are_reported_with_their_lines(tmp_path: Path) -> None:
    """Everything that is wrong is reported at once, in the order of the lines."""
    text = """
windows: {num: 0}
quots: 3
candidates:
  - nam: now
  - name: half
    mutations: x
    quotas:
      - {user: alice, producer_byte_rate: -5}
    remove:
      - {user: bob, keys: [nonsense]}
grid:
  - {user: alice, key: producer_byte_rate, from: 1000, to: 10, steps: 3}
  - {user: alice, key: consumer_byte_rate}
  - {user: alice, key: consumer_byte_rate, values: [a, 1.5]}
  - {user: alice, key: consumer_byte_rate, values: [1], from: 1}
"""
    found = problems_of(tmp_path, text)
    assert [problem.split(":")[0] for problem in found] == [
        *("line 2", "line 3", "line 5", "line 5", "line 7", "line 9", "line 11"),
        *("line 13", "line 14", "line 14", "line 14", "line 15", "line 15", "line 16"),
    ]
    assert "did you mean 'quotas'?" in found[1]
    assert "must be greater than 0" in found[5]
    assert "none of this entity's keys" in found[6]
    assert "`from` must be above 0 and below `to`" in found[7]
    assert "either `values` or `from`, not both" in found[13]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: there is no candidate; give `candidates:`"),
        ("- 1", "line 1: expected keys and values, such as `candidates:`"),
        ("candidates: 3", "line 1: `candidates` must be a list"),
        ("candidates: [3]", "line 1: expected keys and values, such as `name:`"),
        ("grid: [3]", "line 1: expected keys and values, such as `key:`"),
        ("candidates: [{name: ' '}]", "line 1: `name` must be a text that is not empty"),
        ("windows: 3\ncandidates: [{name: a}]", "line 1: `windows` needs num and size-seconds"),
        ("windows: {num: 2000000000}\ncandidates: [{name: a}]", "line 1: a replay takes at most 10000 windows of at most 86400 s"),
        ("windows: {size-seconds: 86401}\ncandidates: [{name: a}]", "line 1: a replay takes at most 10000 windows of at most 86400 s"),
        ("windows: {num: .inf}\ncandidates: [{name: a}]", "line 1: `windows` takes whole numbers"),
        ("windows: {num: 1.5}\ncandidates: [{name: a}]", "line 1: `windows` takes whole numbers"),
        ("candidates:\n- name: a\n- name: a", "line 3: the name 'a' is there already in line 2"),
        ("grid: [{user: a, key: producer_byte_rate, values: []}]", "line 1: `values` must be a list of numbers"),
        ("grid: [{user: a, key: k, from: 1, to: 2, steps: 1}]", "line 1: `steps` must be a whole number from 2 to 1000"),
        ("grid: [{user: a, key: k, from: 1, to: 2, steps: 3, scale: x}]", "line 1: `scale` must be log or linear"),
        ("grid: [{user: a, key: k, from: 1, to: 2, steps: .inf}]", "line 1: `steps` must be a whole number from 2 to 1000"),
        ("grid: [{user: a, key: producer_byte_rate, from: 1, to: .inf, steps: 3}]", "line 1: `to` must be finite"),
        ("candidates: [", "line 1: not valid YAML: expected the node content, but found '<stream end>'"),
    ]
)  # fmt: skip
def test_problem(tmp_path: Path, text: str, problem: str) -> None:
    """Each mistake has a sentence of its own."""
    assert problems_of(tmp_path, text) == (problem,)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is reported by its name."""
    with pytest.raises(InvalidQuotas, match=r"nowhere\.yaml: cannot be read"):
        read_candidates(tmp_path / "nowhere.yaml")


def test_too_many(tmp_path: Path) -> None:
    """A grid of grids does not fill the memory unasked."""
    point = "{{name: n{0}, user: a, key: request_percentage, from: 1, to: 1000000, steps: 1000}}"
    grids = ", ".join(point.format(number) for number in range(12))
    found = problems_of(tmp_path, f"grid: [{grids}]")
    assert found == ("line 1: more than 10000 candidates",)


@pytest.mark.parametrize("text", ["", "11", "11x", "x1", "-1x1", "1.5x1", "٣x1", "1x1x1", "9" * 400 + "x1"])
def test_windows_of_a_command_line(text: str) -> None:
    """As in `quota.window.num` and `quota.window.size.seconds`; the message shows a right one, and no more of a wrong one than fits."""
    assert windows_of_text("21x2") == WindowConfig(samples=21, window_seconds=2)
    with pytest.raises(BadWindows, match="such as 11x1") as caught:
        windows_of_text(text)
    assert len(str(caught.value)) < 140


@pytest.mark.parametrize("text", ["0x1", "11x0", "10001x1", "11x86401"])
def test_windows_that_cannot_be_are_refused(text: str) -> None:
    """Kafka takes no windows below 1, and a replay holds all of them in memory."""
    with pytest.raises(BadWindows):
        windows_of_text(text)
