"""Steps over a history that grows: they add up to what `whatif` answers, however they are interrupted."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.builders.requests import PRODUCE, Request
from tests.pipeline.replay.histories import candidate, history
from tests.pipeline.replay.sums import summed
from tests.pipeline.runs.prometheus import Prometheus, one_cluster
from tests.pipeline.table.rows import append
from tests.strategies import EPOCH_MS

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.release import NEWEST_RELEASE
from quotascope.pipeline.errors import LostCommit, NoHistory, NotWritten, PipelineError, UnreachableTable
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.prometheus.past import QueryRefused, QueryTooLarge
from quotascope.pipeline.prometheus.verify import verify_prometheus
from quotascope.pipeline.releases import Followed, KnownBy, followed_by
from quotascope.pipeline.replay import RESULTS, ReplaySettings, replay
from quotascope.pipeline.runs.shadow import ShadowStream, decided_by
from quotascope.pipeline.runs.verify import NotVerified, times_of, verify_log
from quotascope.pipeline.runs.whatif import what_was_decided
from quotascope.pipeline.table import Table
from quotascope.quotas.candidates import Candidate

USERS = candidate({QuotaEntity(DEFAULT, None): {"producer_byte_rate": 1_000.0}}, "users")
CLIENTS = candidate({QuotaEntity(None, "app"): {"producer_byte_rate": 500.0}}, "clients")


def requests(count: int, user: str = "alice", **fields: Any) -> list[Request]:
    return [Request(after_ms=333, user=user, api_key=PRODUCE, cost=900, **fields) for _ in range(count)]


ROWS = history([one for pair in zip(requests(60), requests(60, "bob"), strict=True) for one in pair])


class Growing:
    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.history = History.create(self.folder, shards=4)
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
    """Each driver continues after the last one, and the counters are those of all steps."""
    growing.shadow(*candidates)
    for begin in range(0, 120, 40):
        growing.add(ROWS.slice(begin, 40))
        growing.shadow(*candidates).step(map)
    final = growing.shadow(*candidates)
    report = final.step(map, all_of_it=True)
    assert (report.waiting, report.late, final.step(map).decided) == (0, 0, 0)
    assert decided(growing) == whole(*candidates)
    answered: Any = replay(ROWS, candidates)
    assert summed([decided_by(growing.folder, candidates).results]) == summed([answered])
    counted: Any = final.counted()
    assert sum(counted["throttled_ms"].to_pylist()) == sum(answered["throttled_ms"].to_pylist())
    states = list(Path(growing.folder, "shadow-state").rglob("*.arrow"))
    shards = 1 if CLIENTS in candidates else 2
    assert len(states) == shards, "those of earlier steps are gone"


def test_a_step_that_was_interrupted(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed step has no effect: the next one begins where it did, with the requests that came meanwhile."""
    shadow = growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    shadow.step(map)
    growing.add(ROWS.slice(60, 30))
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> int:
            raise NotWritten("u", "no space")

        patch.setattr(Table, "advance", full)
        with pytest.raises(NotWritten):
            shadow.step(map)
    growing.add(ROWS.slice(90))
    growing.shadow(USERS).step(map, all_of_it=True)
    assert decided(growing) == whole(USERS)


def test_two_at_once(growing: Growing) -> None:
    """Of two drivers at once, one gives up, since its counters would include the other's."""
    one, second_driver = growing.shadow(USERS), growing.shadow(USERS)
    growing.add(ROWS)

    def overtaken(work: Any, items: Any) -> Any:
        answers = list(map(work, items))
        second_driver.step(map)
        return answers

    with pytest.raises(LostCommit):
        one.step(overtaken)


def test_other_rules_begin_with_what_comes(growing: Growing) -> None:
    """Other rules begin with new requests, and the former rules go on."""
    growing.add(ROWS.slice(0, 60))
    shadow = growing.shadow(USERS)
    assert shadow.step(map, all_of_it=True).decided == 0
    growing.add(ROWS.slice(60))
    assert shadow.step(map, all_of_it=True).decided == 60
    with pytest.raises(PipelineError, match="has decided nothing"):
        decided_by(growing.folder, [CLIENTS])


def test_a_state_of_another_layout_is_not_continued(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """State of another release is refused: its fields would be taken for others."""
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
    """A lost file of state is named in the error."""
    shadow = growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    shadow.step(map)
    for file in Path(growing.folder, "shadow-state").rglob("*.arrow"):
        file.write_bytes(b"no state")
    growing.add(ROWS.slice(60))
    with pytest.raises(UnreachableTable, match=r"shadow-state.*-\d+\.arrow"):
        growing.shadow(USERS).step(map)


def test_a_lost_manifest(growing: Growing) -> None:
    """A lost manifest is an error with the file and what to do."""
    growing.shadow(USERS)
    for file in Path(growing.folder, "shadow-state").rglob("*.json"):
        file.write_bytes(b"{")
    with pytest.raises(UnreachableTable, match=r"shadow-state.*\d+\.json.*begin again"):
        growing.shadow(USERS)


def test_a_commit_has_one_number_for_a_step(growing: Growing) -> None:
    """A step of all shards has one number in the log of the table, whose every commit would carry its names."""
    shadow = growing.shadow(USERS)
    for begin in (0, 60):
        growing.add(ROWS.slice(begin, 60))
        shadow.step(map)
    log = Path(growing.folder, "shadow", "_delta_log")
    actions = [json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]
    names = [action["txn"]["appId"] for action in actions if "txn" in action]
    assert len(names) == 3, "the beginning, and two steps"
    assert len(set(names)) == 1


def test_files_of_a_killed_step_go(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next committed step removes files of a killed one, and leaves those of a process that goes on."""
    shadow = growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    with monkeypatch.context() as patch:
        patch.setattr(Table, "advance", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            shadow.step(map)
    folder = Path(growing.folder, "shadow-state", shadow.rules)
    assert len([*folder.glob("*.json")]) == 2
    (folder / f"{2**60}.json").write_text("of a step that begins after the next one")
    growing.shadow(USERS).step(map)
    assert len([*folder.glob("*.json")]) == 2
    assert len([*folder.glob("*.arrow")]) == 2
    assert (folder / f"{2**60}.json").exists()


def test_the_releases_that_a_stream_followed(growing: Growing) -> None:
    """A stream's answer names the releases that it followed when it began, not the log's of today."""
    growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    growing.shadow(USERS).step(map, all_of_it=True)
    requests = IngestTables.create(growing.folder, 4).requests
    requests.advance(
        "test", [], after_epoch=None, epoch=0, notes={"quotascope.kafka 4.1": ROWS.to_pylist()[-1]["timestamp"]}
    )
    growing.add(ROWS.slice(60))
    begin_ms = growing.history.detail.files()[0].first_ms or 0
    assert str(followed_by(growing.folder, growing.history.detail, Followed()).release) == "4.1"
    assert str(decided_by(growing.folder, [USERS]).kafka.release) == str(NEWEST_RELEASE), "no step has followed 4.1 yet"
    growing.shadow(USERS).step(map, all_of_it=True)
    kafka = decided_by(growing.folder, [USERS]).kafka
    assert (str(kafka.release), kafka.known_by) == ("4.1", KnownBy.LOG)
    ((words, until_ms),) = kafka.earlier
    assert words == str(NEWEST_RELEASE)
    assert begin_ms < until_ms < ROWS.to_pylist()[-1]["timestamp"]
    answer = what_was_decided(growing.folder, [USERS]).summary
    assert answer.kafka == kafka
    assert f"UTC follow Kafka {NEWEST_RELEASE}, as the stream knew no other then" in answer.kafka.note
    assert kafka.values()["earlier"] == [{"version": str(NEWEST_RELEASE), "until": until_ms / 1_000}]


SET_MS = ROWS.to_pylist()[59]["timestamp"] + 1


@pytest.mark.parametrize(("throttles", "agrees"), [((0.9, 1.1), True), ((0.0, 0.0), False), ((3.0, 3.0), False)])
def test_verified_by_the_log(
    growing: Growing,
    throttles: tuple[float, float],
    agrees: bool,  # noqa: FBT001 - of a table
) -> None:  # fmt: skip
    """
    Limits are predicted in the first half.

    In the second the log has throttles near that, none, or three times as much.
    """
    growing.shadow(USERS)
    growing.add(ROWS.slice(0, 60))
    growing.shadow(USERS).step(map, all_of_it=True)
    predicted = {row["user"]: row["throttled_ms"] for row in decided_by(growing.folder, [USERS]).results.to_pylist()}
    later = ROWS.slice(60).to_pylist()
    for row, factor in zip(later[-2:], throttles, strict=True):
        row["throttle_ms"] = int(factor * predicted[row["user"]])
    growing.add(pa.Table.from_pylist(later, ROWS.schema))
    verification = verify_log(growing.folder, "users", SET_MS, None, None)
    assert {entity.user for entity in verification.entities} == {"alice", "bob"}
    assert verification.agrees(0.1) is agrees
    for folder_since, why in ((EPOCH_MS * 2, "no request was read"), (SET_MS - 30_000, "decided no request")):
        with pytest.raises(NotVerified, match=why):
            verify_log(growing.folder, "users", folder_since, None, None)
    shutil.rmtree(f"{growing.folder}/shadow")
    with pytest.raises(NotVerified, match="quotascope shadow stream --into"):
        verify_log(growing.folder, "users", SET_MS, None, None)


def test_a_raised_limit_of_a_held_back_client_is_a_bound(growing: Growing) -> None:
    """A held-back client that uses up a raised limit is no difference, and another client is one."""
    wide = candidate({QuotaEntity(DEFAULT, None): {"producer_byte_rate": 1e9}}, "wide")
    rows_before, later = (rows.to_pylist() for rows in (ROWS.slice(0, 60), ROWS.slice(60)))
    for row in rows_before:
        row["throttle_ms"] = 500 if row["user"] == "alice" else 0
    growing.shadow(wide)
    growing.add(pa.Table.from_pylist(rows_before, ROWS.schema))
    growing.shadow(wide).step(map, all_of_it=True)
    for row in later:
        row["throttle_ms"] = 200 if row["user"] == "alice" else 0
    growing.add(pa.Table.from_pylist(later, ROWS.schema))
    verification = verify_log(growing.folder, "wide", SET_MS, None, None)
    assert {entity.user: (entity.held_back, entity.agrees) for entity in verification.entities} == {
        "alice": (True, True),
        "bob": (False, True),
    }
    assert verification.agrees(0.1)
    growing.add(
        pa.Table.from_pylist([{**later[-1], "user": "bob", "throttle_ms": 900, "position": 10**6}], ROWS.schema)
    )
    assert not verify_log(growing.folder, "wide", SET_MS, None, None).agrees(0.1)


def test_a_prediction_of_a_part_of_the_time(growing: Growing) -> None:
    """A stream of some seconds predicts for these seconds, scaled to the time since its first step."""
    seen = ROWS.slice(0, 40)
    for begin in range(0, 40, 10):
        growing.shadow(USERS)
        growing.add(seen.slice(begin, 10))
        growing.shadow(USERS).step(map, all_of_it=True)
    ends = [seen["timestamp"][place].as_py() for place in (9, 39)]
    growing.add(ROWS.slice(40))
    predicted = (
        decided_by(growing.folder, [USERS]).results.filter(pc.field("user") == "alice")["throttled_ms"][0].as_py()
    )
    verification = verify_log(growing.folder, "users", ends[1], None, None)
    (alice,) = (entity for entity in verification.entities if entity.user == "alice")
    assert verification.times.begin == ends[0]
    seconds = predicted / 1_000 * (verification.times.until - ends[1]) / (ends[1] - ends[0])
    assert alice.predicted.seconds == pytest.approx(seconds)


def test_a_bound_is_verified_by_prometheus() -> None:
    """A client that is held back under a higher limit has no throttle time, which is no missing prediction."""
    series = {
        "kafka_quota_shadow_utilization_ratio": ("alice", 20, {"east": 8.0}),
        "kafka_quota_throttle_time_seconds": ("alice", 40, {"east": 28.0}),
    }
    verification = verify_prometheus(
        Prometheus(series), "looser", 100_000, 200_000, None, selector="", check=one_cluster
    )
    (alice,) = verification.entities
    assert (alice.held_back, alice.predicted.seconds, alice.happened.seconds) == (True, 0.0, 28.0)
    assert verification.agrees(0.1)


def test_verified_by_prometheus() -> None:
    """
    Queries name the shadow as a text of PromQL.

    Answers are sums over entities of a cluster, without the overflow, for as many samples.
    """
    series = {
        "kafka_quota_shadow_throttle_time_seconds": ("alice", 20, {"east": 15.0}),
        "kafka_quota_throttle_time_seconds": ("alice", 40, {"east": 28.0, "west": 900.0}),
    }
    server = Prometheus(series)
    verification = verify_prometheus(server, 'a "b"', 100_000, 200_000, None, selector="", check=one_cluster)
    assert verification.agrees(0.1)
    assert not verification.agrees(0.01)
    assert [entity.cluster for entity in verification.entities] == ["east"]
    assert verification.times == times_of(100_000, 200_000, 0)
    assert any('{shadow="a \\"b\\""}' in query for query in server.queries)
    verify_prometheus(server, "a", 100_000, 200_000, None, selector='env="prod"', check=one_cluster)
    assert all('",env="prod"}' in query for query in server.queries[len(server.queries) // 2 :])
    for error, why in (
        (QueryTooLarge("too many samples"), "too many samples: take a shorter time"),
        (QueryRefused("no connection"), "no connection$"),
    ):
        server.error = error
        with pytest.raises(NotVerified, match=why):
            verify_prometheus(server, "a", 100_000, 200_000, None, selector="", check=one_cluster)
    with pytest.raises(NotVerified, match="before now"):
        times_of(200_000, 100_000, None)


def test_long_periods_are_asked_of_prometheus_in_ranges() -> None:
    """Ranges of a query are bounded, as a server has all their values in memory; their figures are added up."""
    figures = {"kafka_quota_shadow_throttle_time_seconds": 15.0, "kafka_quota_throttle_time_seconds": 14.0}
    server = Prometheus({name: ("alice", 20, {"east": value}) for name, value in figures.items()})
    hour_ms = 3_600_000
    verification = verify_prometheus(server, "a", 10 * hour_ms, 20 * hour_ms, 0, selector="", check=one_cluster)
    (alice,) = verification.entities
    assert (alice.predicted.seconds, alice.happened.seconds) == (2 * 15.0, 2 * 14.0)
    lengths_ms = {int(length) for length in re.findall(r"\[(\d+)ms:15s\]", " ".join(server.queries))}
    assert lengths_ms == {4 * hour_ms - 1, 6 * hour_ms - 1}
