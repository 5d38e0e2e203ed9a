from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.recommend.rows import HOUR, MONDAY, history, make_folder, produced
from tests.pipeline.report.results import HOSTILE
from tests.pipeline.table.rows import DAY_MS, LAYOUT, SCHEMA, append, rows

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.report import html
from quotascope.pipeline.columns import GroupKey
from quotascope.pipeline.engine import Engine, Local
from quotascope.pipeline.history import History, rollup
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.rates import EmptyHistory, LimitGroup, _span_of
from quotascope.pipeline.recommend.advice import Advice
from quotascope.pipeline.recommend.coverage import Logged, ShortLog
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs import engine
from quotascope.pipeline.runs.engine import EngineChoice, NoSpark, chosen, engine_of
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.recommend import advise, report, usages_of
from quotascope.pipeline.runs.whatif import document as whatif_json
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.table import Table
from quotascope.pipeline.table.users import whole_users
from quotascope.quotas import Commands, QuotaSet, read_quotas
from quotascope.quotas.candidates import Candidate

CAPTURES = Path(__file__).parents[1] / "captures"
ALICE = QuotaEntity("alice")


def tight(entity: QuotaEntity = ALICE, limit: float = 1_000.0) -> Candidate:
    return Candidate(name="tight", quotas=QuotaSet({entity: {"producer_byte_rate": limit}}))


def test_replay_of_a_folder(tmp_path: Path) -> None:
    """A replay has results, their sums and charts of whole seconds, whatever the names, and reports progress."""
    users = ("alice", "bob", HOSTILE)
    rows = [produced(offset_ms, 20_000, user=user) for user in users for offset_ms in (500, 2 * HOUR + 500)]
    reported: list[tuple[int, int]] = []
    answer = what_if(
        make_folder(tmp_path / "usage", rows),
        [tight()],
        Mode.OPEN_LOOP,
        progress=lambda done, count: reported.append((done, count)),
    )
    assert answer.summary.span_ms == (MONDAY, MONDAY + 2 * HOUR + 1_000)
    assert answer.summary.candidates[0].hit == 1
    assert set(answer.usages) == {LimitGroup(QuotaType.PRODUCE, "alice", None)}
    assert reported[-1][0] == reported[-1][1] > 0


def test_a_real_log_calibrates_its_own_quotas(tmp_path: Path) -> None:
    """
    Under the quotas that were in force a replay throttles for about as long as the brokers did.

    Waits are looked at on demand alone.
    """
    folder = str(tmp_path / "usage")
    log = CAPTURES / "kafka-4.3.1-request.log.gz"
    ingest_logs([str(log)], folder, IngestOptions(broker="1"), engine=EngineChoice.LOCAL)
    in_force = Candidate(name="in force", quotas=read_quotas(CAPTURES / "kafka-4.3.1-quotas.yaml"))
    usual, with_wait = (
        what_if(folder, [in_force], Mode.OPEN_LOOP, wait_saved=wait_saved) for wait_saved in (False, True)
    )
    assert usual.results == with_wait.results
    rows = History.open(folder).detail.read(["throttle_ms", "refused"]).to_pylist()
    logged = usual.summary.logged
    assert logged.throttle_ms == sum(max(0, row["throttle_ms"]) for row in rows) > 0
    assert logged.requests == sum(row["throttle_ms"] > 0 or row["refused"] for row in rows)
    document = whatif_json(usual)
    assert document["calibration"]["ratio"] == pytest.approx(1.0, abs=0.3)
    assert sum("Calibration: the log has" in note for note in usual.summary.notes) == 1
    parts = {
        kind: sum(row["throttled_ms"] for row in usual.results.to_pylist() if row["quota_type"] == kind)
        for kind in ("request", "controller_mutation")
    }
    assert document["calibration"]["replayed_request_throttle_seconds"] == parts["request"] / 1_000 > 0
    mutations = sum(
        max(0, row["throttle_ms"])
        for row in History.open(folder).detail.read(["throttle_ms", "client_id"]).to_pylist()
        if row["client_id"] == "topic-admin"
    )
    assert parts["controller_mutation"] == pytest.approx(mutations, rel=0.05)
    assert any("Request quotas imposed" in note for note in usual.summary.notes)
    assert (usual.summary.benefit, document["brokers"]) == (None, None)
    assert with_wait.summary.benefit is not None
    heads = [[figure.head for figure in answer.summary.figures] for answer in (usual, with_wait)]
    assert heads[1] == [*heads[0], "wait saved for others"]


def test_a_log_without_throttles_has_no_ratio(tmp_path: Path) -> None:
    """Without throttles in the log, the replay's throttle time has no ratio to it."""
    folder = make_folder(tmp_path / "usage", [produced(offset_ms, 20_000) for offset_ms in (500, 600, 700)])
    summary = what_if(folder, [tight()], Mode.OPEN_LOOP).summary
    assert summary.logged.ratio(summary.replayed_ms) is None
    assert "the log has 0 s of throttle time for 0 requests; the replay" in " ".join(summary.notes)


def test_users_meet_under_a_rule_for_a_client(tmp_path: Path) -> None:
    """Two users that are fine alone go past the limit of the client-id together, whatever shard they are in."""
    rows = [produced(0, 8_000, user=f"user {n}") for n in range(10)]
    folder = make_folder(tmp_path / "usage", rows)
    shared = tight(QuotaEntity(None, "app1"), 7_000.0)
    answer = what_if(folder, [shared], Mode.OPEN_LOOP)
    assert answer.summary.candidates[0].hit > 0
    advice = advise(folder, Policy(share=0.0, shape=RuleShape.CLIENT, short_log=True))
    assert [limit.lowest for limit in advice.recommended] == [8_000.0]


def test_advice_is_for_the_windows_of_the_cluster(tmp_path: Path) -> None:
    """Fewer windows need a higher limit for a burst, with which their replay throttles no client."""
    rows = [produced(0, 100_000)]
    folder = make_folder(tmp_path / "usage", rows)
    short = ClusterWindows(client=WindowConfig(samples=3))
    policy = Policy(share=0.0, headroom=0.0, short_log=True)
    default, few = (advise(folder, policy, windows=windows) for windows in (None, short))
    lowest = [limit.lowest for advice in (default, few) for limit in advice.recommended]
    assert lowest == [10_000.0, pytest.approx(50_000, rel=1e-3)]
    assert not few.hits


def page(advice: Advice) -> str:
    return html(report(advice, Commands(lines=()), usages_of(advice)))


def test_advice_is_replayed_with_what_is_configured(tmp_path: Path) -> None:
    """A configured rule for a pair decides before the recommended one for its user, and its victim is named."""
    rows = [produced(offset_ms, 200_000) for offset_ms in range(0, 60_000, 1_000)]
    folder = make_folder(tmp_path / "usage", rows)
    quotas_now = QuotaSet({QuotaEntity("alice", "app1"): {"producer_byte_rate": 50_000.0}})
    alone, with_configured = (
        advise(folder, Policy(short_log=True), configured=configured) for configured in (None, quotas_now)
    )
    assert alone.hits == []
    (hit,) = with_configured.hits
    assert (hit.user, hit.client_id, hit.limit) == ("alice", "app1", 50_000.0)
    assert 0 < hit.muted_ms == hit.muted_now_ms
    assert "50 kB/s" in page(with_configured)


def test_days_that_were_dropped_are_neither_named_nor_drawn(tmp_path: Path) -> None:
    """The period is that of the replayed requests, without days whose requests were dropped."""
    rows = [produced(day * 24 * HOUR + second * 1_000, 20_000) for day in (0, 3) for second in range(60)]
    whole, part = (make_folder(tmp_path / name, rows) for name in ("whole", "part"))
    later = dt.datetime.fromtimestamp(MONDAY / 1_000, dt.UTC).date() + dt.timedelta(days=3)
    History.open(part).detail.drop_before(later)
    fresh = make_folder(tmp_path / "fresh", rows[60:])
    answer, expected = (what_if(folder, [tight()], Mode.OPEN_LOOP) for folder in (part, fresh))
    begin = MONDAY + 3 * 24 * HOUR
    assert answer.summary.span_ms == expected.summary.span_ms == (begin, begin + 60_000)
    assert repr(answer.usages) == repr(expected.usages)  # nan is not equal to itself
    policy = Policy(short_log=True)
    advices = [advise(folder, policy) for folder in (part, fresh)]
    assert [advice.span_ms for advice in advices] == [(begin, begin + 60_000)] * 2
    assert page(advices[0]).replace(part, fresh) == page(advices[1])
    History.open(whole).seconds.drop_before(later)  # as by --table seconds
    both = what_if(whole, [tight()], Mode.OPEN_LOOP)
    assert both.summary.span_ms == (MONDAY, begin + 60_000)
    (drawn,) = both.usages.values()
    assert drawn.usage.times_ms[0] == MONDAY
    assert drawn.by_hour[0] == drawn.by_hour[72] > 0
    late = produced(5_000, 1_000_000)
    opened = History.open(whole)
    append(opened.detail, "late", history([late]))
    append(opened.seconds, "late", rollup(history([late])))
    never_dropped = make_folder(tmp_path / "never dropped", [*rows, late])
    again, expected = (what_if(folder, [tight()], Mode.OPEN_LOOP) for folder in (whole, never_dropped))
    assert repr(again.usages) == repr(expected.usages)
    for table in (History.open(part).detail, History.open(part).seconds):
        table.drop_before(later + dt.timedelta(days=1))
    with pytest.raises(EmptyHistory):
        what_if(part, [tight()], Mode.OPEN_LOOP)


def test_period_of_a_table_without_statistics(tmp_path: Path) -> None:
    """The times of a file are read from its rows if its commit lacks them."""
    history = History.open(make_folder(tmp_path / "usage", [produced(1_500, 1), produced(9_999, 1)]))
    (file,) = history.detail.files()
    unknown = replace(file, first_ms=None, last_ms=None)
    assert _span_of(history.detail, unknown) == (file.first_ms, file.last_ms) == (MONDAY + 1_500, MONDAY + 9_999)


def test_a_short_log_is_refused(tmp_path: Path) -> None:
    """A short log is refused unless it is requested; then each entity has the share of throttled requests."""
    rows = [produced(offset_ms, 1_000, throttle_ms=offset_ms // 1_000) for offset_ms in (0, 1_000, 2_000)]
    rows += [produced(offset_ms, 1_000, user="bob") for offset_ms in (0, 1_000)]
    folder = make_folder(tmp_path / "usage", rows)
    with pytest.raises(ShortLog, match="covers 3 s, with requests in 1 hour"):
        advise(folder, Policy())
    answer = advise(folder, Policy(short_log=True))
    assert answer.coverage.logged == Logged(5, 2)
    logged = {advice.entity: answer.logged(advice) for advice in answer.recommended}
    assert logged == {ALICE: Logged(3, 2), QuotaEntity("bob"): Logged(2, 0)}
    assert answer.held_back == 1
    long = [produced(offset_ms * HOUR, 1_000) for offset_ms in range(25)]
    assert not advise(make_folder(tmp_path / "long", long), Policy()).coverage.short


@pytest.mark.parametrize(
    ("wanted", "size", "submitted", "expected"),
    [
        (EngineChoice.AUTO, 10, False, EngineChoice.LOCAL),
        (EngineChoice.AUTO, 1_000, False, EngineChoice.SPARK),
        (EngineChoice.AUTO, 10, True, EngineChoice.SPARK),
        (EngineChoice.LOCAL, 1_000, True, EngineChoice.LOCAL),
        (EngineChoice.SPARK, 10, False, EngineChoice.SPARK),
    ],
)
def test_engine_is_chosen_by_size(
    wanted: EngineChoice, size: int, *, submitted: bool, expected: EngineChoice, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The engine is chosen by size, unless it is named; under spark-submit it is Spark."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen(wanted, size, 100) is expected


def test_spark_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not chosen if it is not installed, and the error says how to install it."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(engine, "find_spec", lambda _name: None)
    assert chosen(EngineChoice.AUTO, 1_000, 100) is EngineChoice.LOCAL
    with pytest.raises(NoSpark, match="pip install pyspark"):
        engine_of(EngineChoice.SPARK)


@pytest.mark.parametrize(("path", "expected"), [("-", EngineChoice.LOCAL), ("log", EngineChoice.SPARK)])
def test_standard_input_is_not_read_by_spark(
    path: str, expected: EngineChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input, however large, is read in this process, as Spark's workers do not have it."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("quotascope.pipeline.runs.ingest.MOST_LOCAL_BYTES", -1)

    def begun(choice: EngineChoice) -> Engine:
        raise RuntimeError(choice.value)

    monkeypatch.setattr("quotascope.pipeline.runs.ingest.engine_of", begun)
    (tmp_path / "log").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=expected.value):
        ingest_logs([path], "usage", IngestOptions(broker="1"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)


def test_a_shard_is_read_in_shares(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a large shard come by user, each row once; those of a small one all at once."""
    monkeypatch.setattr("quotascope.pipeline.table.users.SHARE", 120)
    for number in range(2):
        append(table, f"{number}", rows(*((f"user {n % 40}", None, n * DAY_MS // 99, number) for n in range(400))))
    for files in table.shards().values():
        shares = [set(part["user"].to_pylist()) for part in whole_users(table, files, SCHEMA.names)]
        count = sum(part.num_rows for part in whole_users(table, files, ["user"]))
        assert count == sum(file.rows for file in files)
        assert len(shares) == -(-count // 120)
        assert len(set.union(*shares)) == sum(map(len, shares))
        assert len([share for share in shares if share]) > 1


def test_long_names_are_held_once(table: Table) -> None:
    """A row has about 100 bytes in memory, however long its names are."""
    long = "x" * 32_767
    append(table, "long", rows(*((long, long, DAY_MS, number) for number in range(2_000))))
    [held] = whole_users(table, table.files(), SCHEMA.names)
    assert held.nbytes < 1 << 20


def test_a_shard_of_files_without_rows_has_no_users(table: Table) -> None:
    """A shard whose files have no rows, as other programs may commit, has no users."""
    empty = table.storage.write(table.layout, (3, 1), table.schema, [])
    assert table.advance("empty", [empty], after_epoch=None, epoch=0) == 0
    columns = ["user", "amount"]
    by_shard = whole_users(table, table.files(), columns)
    for (held,) in (by_shard, Local().grouped(table, columns, GroupKey(columns=["user"]), lambda rows: rows, "")):
        assert (len(held), held.column_names) == (0, columns)
