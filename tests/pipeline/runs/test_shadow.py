"""Steps over a history that grows: they add up to what `whatif` answers, however they are interrupted."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipeline.replay.histories import PRODUCE, Request, candidate, history
from tests.pipeline.replay.test_continued import summed
from tests.pipeline.runs.prometheus import answering
from tests.pipeline.table.rows import append
from tests.strategies import EPOCH_MS

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.pipeline.errors import LostCommit, NoHistory, NotWritten, PipelineError, UnreachableTable
from quotascope.pipeline.history import History
from quotascope.pipeline.replay import RESULTS, ReplaySettings, replay
from quotascope.pipeline.runs.shadow import ShadowStream, decided_by
from quotascope.pipeline.runs.verify import NotVerified, times_of, verify_log, verify_prometheus
from quotascope.pipeline.table import Table, run_here
from quotascope.quotas.candidates import Candidate

USERS = candidate({QuotaEntity(DEFAULT, None): {"producer_byte_rate": 1_000.0}}, "users")
CLIENTS = candidate({QuotaEntity(None, "app"): {"producer_byte_rate": 500.0}}, "clients")


def requests(count: int, user: str = "alice", **more: Any) -> list[Request]:
    return [Request(after_ms=333, user=user, api_key=PRODUCE, cost=900, **more) for _ in range(count)]


ROWS = history([one for pair in zip(requests(60), requests(60, "bob"), strict=True) for one in pair])


class Growing:
    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.history = History.create(self.folder, buckets=4)
        self._parts = 0

    def add(self, rows: pa.Table) -> None:
        self._parts += 1
        append(self.history.detail, f"part {self._parts}", rows)

    def shadow(self, *candidates: Candidate) -> ShadowStream:
        return ShadowStream(self.folder, self.history, candidates, hold_ms=5_000)


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "usage")


def decided(growing: Growing) -> dict[Any, Any]:
    return summed([growing.shadow(USERS).table.read(RESULTS.names)])


def whole(*candidates: Candidate) -> dict[Any, Any]:
    return summed([replay(ROWS, candidates, settings=ReplaySettings(per_broker=True))])


@pytest.mark.parametrize("candidates", [(USERS,), (USERS, CLIENTS)])
def test_steps_of_several_drivers(growing: Growing, candidates: Sequence[Candidate]) -> None:
    """Each driver continues; the counters are those of all steps."""
    growing.shadow(*candidates)
    for begin in range(0, 120, 40):
        growing.add(ROWS.slice(begin, 40))
        growing.shadow(*candidates).step(run_here)
    last = growing.shadow(*candidates)
    report = last.step(run_here, all_of_it=True)
    assert (report.waiting, report.late, last.step(run_here).decided) == (0, 0, 0)
    assert decided(growing) == whole(*candidates)
    answered: Any = replay(ROWS, candidates)
    assert summed([decided_by(growing.folder, candidates)]) == summed([answered])
    counted: Any = last.counted()
    assert sum(counted["throttled_ms"].to_pylist()) == sum(answered["throttled_ms"].to_pylist())
    states = list(Path(growing.folder, "shadow-state").rglob("*.arrow"))
    buckets = 1 if CLIENTS in candidates else 2
    assert len(states) == buckets, "those of earlier steps are gone"


def test_a_step_that_was_interrupted(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never was: the next one begins where it did, with the requests that came meanwhile."""
    shadow = growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    shadow.step(run_here)
    growing.add(ROWS.slice(60, 30))
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> int:
            raise NotWritten("u", "no space")

        patch.setattr(Table, "advance", full)
        with pytest.raises(NotWritten):
            shadow.step(run_here)
    growing.add(ROWS.slice(90))
    growing.shadow(USERS).step(run_here, all_of_it=True)
    assert decided(growing) == whole(USERS)


def test_two_at_once(growing: Growing) -> None:
    """Of two drivers one gives up: its counters would be another's."""
    one, other = growing.shadow(USERS), growing.shadow(USERS)
    growing.add(ROWS)

    def overtaken(work: Any, items: Any, progress: Any = None) -> Any:
        answers = list(run_here(work, items, progress))
        other.step(run_here)
        return answers

    with pytest.raises(LostCommit):
        one.step(overtaken)


def test_other_rules_begin_with_what_comes(growing: Growing) -> None:
    """They take nothing over, and the former rules go on."""
    growing.add(ROWS.slice(0, 60))
    shadow = growing.shadow(USERS)
    assert shadow.step(run_here, all_of_it=True).decided == 0
    growing.add(ROWS.slice(60))
    assert shadow.step(run_here, all_of_it=True).decided == 60
    with pytest.raises(PipelineError, match="has decided nothing"):
        decided_by(growing.folder, [CLIENTS])


def test_a_state_of_another_layout_is_not_continued(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of another release, whose fields would be taken for others."""
    ours = growing.shadow(USERS).rules
    monkeypatch.setattr("quotascope.pipeline.replay.continued.FIELDS", 1)
    assert growing.shadow(USERS).rules != ours


def test_nothing_was_decided(tmp_path: Path) -> None:
    """A history of which no stream has decided anything is not taken for a folder that is not there."""
    with pytest.raises(NoHistory, match="there is no such folder"):
        decided_by(str(tmp_path / "usage"), [USERS])
    growing = Growing(tmp_path / "usage")
    with pytest.raises(PipelineError, match="has decided nothing"):
        decided_by(growing.folder, [USERS])


def test_a_lost_state(growing: Growing) -> None:
    """The error names the file."""
    shadow = growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    shadow.step(run_here)
    for file in Path(growing.folder, "shadow-state").rglob("*.arrow"):
        file.write_bytes(b"no state")
    growing.add(ROWS.slice(60))
    with pytest.raises(UnreachableTable, match=r"shadow-state.*-1\.arrow"):
        growing.shadow(USERS).step(run_here)


SET_MS = ROWS.to_pylist()[59]["timestamp"] + 1


@pytest.mark.parametrize(("throttles", "agrees"), [((0.9, 1.1), True), ((0.0, 0.0), False), ((3.0, 3.0), False)])
def test_verified_by_the_log(
    growing: Growing,
    throttles: tuple[float, float],
    agrees: bool,  # noqa: FBT001 - of a table
) -> None:  # fmt: skip
    """Predicted in the first half; in the second the log has throttles near that, none, or three times as much."""
    growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    growing.shadow(USERS).step(run_here, all_of_it=True)
    predicted = {row["user"]: row["throttled_ms"] for row in decided_by(growing.folder, [USERS]).to_pylist()}
    later = ROWS.slice(60).to_pylist()
    for row, factor in zip(later[-2:], throttles, strict=True):
        row["throttle_ms"] = int(factor * predicted[row["user"]])
    growing.add(pa.Table.from_pylist(later, ROWS.schema))
    found = verify_log(growing.folder, "users", SET_MS, None, None)
    assert {each.user for each in found.entities} == {"alice", "bob"}
    assert found.agrees(0.1) is agrees
    for folder_since, why in ((EPOCH_MS * 2, "no request was read"), (SET_MS - 30_000, "decided no request")):
        with pytest.raises(NotVerified, match=why):
            verify_log(growing.folder, "users", folder_since, None, None)
    shutil.rmtree(f"{growing.folder}/shadow")
    with pytest.raises(NotVerified, match="quotascope shadow stream --into"):
        verify_log(growing.folder, "users", SET_MS, None, None)


def test_a_prediction_of_a_part_of_the_time(growing: Growing) -> None:
    """A stream of some seconds predicts for those: what they had is scaled to the time since, from the first step on, which has no begin."""
    seen = ROWS.slice(0, 40)
    for begin in range(0, 40, 10):
        growing.shadow(USERS)
        growing.add(seen.slice(begin, 10))
        growing.shadow(USERS).step(run_here, all_of_it=True)
    ends = [seen["timestamp"][place].as_py() for place in (9, 39)]
    growing.add(ROWS.slice(40))
    predicted = decided_by(growing.folder, [USERS]).filter(pc.field("user") == "alice")["throttled_ms"][0].as_py()
    found = verify_log(growing.folder, "users", ends[1], None, None)
    (alice,) = (each for each in found.entities if each.user == "alice")
    assert found.times.begin == ends[0]
    seconds = predicted / 1_000 * (found.times.until - ends[1]) / (ends[1] - ends[0])
    assert alice.predicted.seconds == pytest.approx(seconds)


def test_verified_by_prometheus() -> None:
    """What is asked names the shadow as a text of PromQL; the answers are sums over entities of a cluster, of which others do not count, for as many samples."""
    series = {
        "kafka_quota_shadow_throttle_time_seconds": ("alice", 20, {"east": 15.0}),
        "kafka_quota_throttle_time_seconds": ("alice", 40, {"east": 28.0, "west": 900.0}),
    }
    with answering(series) as (url, asked):
        found = verify_prometheus(url, 'a "b"', 100_000, 200_000, None)
    assert found.agrees(0.1)
    assert not found.agrees(0.01)
    assert [each.cluster for each in found.entities] == ["east"]
    assert found.times == times_of(100_000, 200_000, 0)
    assert any('{shadow="a \\"b\\""}' in each for each in asked)
    with pytest.raises(NotVerified, match="does not answer"):
        verify_prometheus(url, "a", 100_000, 200_000, None)
    for wrong, why in (
        ("file:///etc/passwd", "no URL"),
        ("http://[::1", "no URL"),
        ("http://a b/", "not an answer of"),
        ("http://me:hidden@h", "user or password"),
    ):
        with pytest.raises(NotVerified, match=why) as raised:
            verify_prometheus(wrong, "a", 100_000, 200_000, None)
        assert "hidden" not in str(raised.value)
    with pytest.raises(NotVerified, match="before now"):
        times_of(200_000, 100_000, None)
