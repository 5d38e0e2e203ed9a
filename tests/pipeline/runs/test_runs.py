from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.recommend.rows import HOUR, MONDAY, history, make_folder, produced
from tests.pipeline.report.results import HOSTILE
from tests.pipeline.table.rows import DAY_MS, LAYOUT, SCHEMA, append, rows

from quotascope.metrics import QuotaEntity, QuotaType, WindowConfig
from quotascope.pipeline.history import History, rollup
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.rates import EmptyHistory, LimitGroup, _span_of
from quotascope.pipeline.recommend.coverage import Logged, ShortLog
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs import engine
from quotascope.pipeline.runs.engine import Engine, NoSpark, chosen, run_of, whole_users
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.recommend import advise, page
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.table import Run, Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

ALICE = QuotaEntity("alice")


def tight(entity: QuotaEntity = ALICE, limit: float = 1_000.0) -> Candidate:
    return Candidate(name="tight", quotas=QuotaSet({entity: {"producer_byte_rate": limit}}))


def test_replay_of_a_folder(tmp_path: Path) -> None:
    """Results, their sums, and what is drawn, whatever the names, of whole seconds; progress is reported."""
    users = ("alice", "bob", HOSTILE)
    rows = [produced(at, 20_000, user=user) for user in users for at in (500, 2 * HOUR + 500)]
    reported: list[tuple[int, int]] = []
    found = what_if(
        make_folder(tmp_path / "usage", rows),
        [tight()],
        Mode.OPEN_LOOP,
        progress=lambda done, count: reported.append((done, count)),
    )
    assert found.summary.span_ms == (MONDAY, MONDAY + 2 * HOUR + 1_000)
    assert found.summary.candidates[0].hit == 1
    assert set(found.usages) == {LimitGroup(QuotaType.PRODUCE, "alice", None)}
    assert reported[-1][0] == reported[-1][1] > 0


def test_users_meet_under_a_rule_for_a_client(tmp_path: Path) -> None:
    """Two users that are fine alone go past the limit of the client-id together, whatever bucket they are in."""
    rows = [produced(0, 8_000, user=f"user {n}") for n in range(10)]
    folder = make_folder(tmp_path / "usage", rows)
    shared = tight(QuotaEntity(None, "app1"), 7_000.0)
    found = what_if(folder, [shared], Mode.OPEN_LOOP)
    assert found.summary.candidates[0].hit > 0
    advice = advise(folder, Policy(share=0.0, shape=RuleShape.CLIENT, short_log=True))
    assert [each.lowest for each in advice.recommended] == [8_000.0]


def test_advice_is_for_the_windows_of_the_cluster(tmp_path: Path) -> None:
    """A burst fits into fewer windows only under a higher limit, and with that limit no client is throttled in the replay of these windows."""
    rows = [produced(0, 100_000)]
    folder = make_folder(tmp_path / "usage", rows)
    short = ClusterWindows(client=WindowConfig(samples=3))
    policy = Policy(share=0.0, headroom=0.0, short_log=True)
    default, few = (advise(folder, policy, windows=each) for each in (None, short))
    lowest = [each.lowest for advice in (default, few) for each in advice.recommended]
    assert lowest == [10_000.0, pytest.approx(50_000, rel=1e-3)]
    assert not few.hits


def test_advice_is_replayed_with_what_is_configured(tmp_path: Path) -> None:
    """A rule for a pair that is set already decides before the recommended one for its user, and its victim is named."""
    rows = [produced(at, 200_000) for at in range(0, 60_000, 1_000)]
    folder = make_folder(tmp_path / "usage", rows)
    now = QuotaSet({QuotaEntity("alice", "app1"): {"producer_byte_rate": 50_000.0}})
    alone, beside = (advise(folder, Policy(short_log=True), now=each) for each in (None, now))
    assert alone.hits == []
    (hit,) = beside.hits
    assert (hit.user, hit.client_id, hit.limit) == ("alice", "app1", 50_000.0)
    assert 0 < hit.muted_ms == hit.muted_now_ms
    assert "50 kB/s" in page(beside, [])


def test_days_that_were_dropped_are_neither_named_nor_drawn(tmp_path: Path) -> None:
    """The period is that of the requests that are replayed, also in a folder whose sums still hold days that its history lost."""
    rows = [produced(day * 24 * HOUR + second * 1_000, 20_000) for day in (0, 3) for second in range(60)]
    whole, part = (make_folder(tmp_path / name, rows) for name in ("whole", "part"))
    later = dt.datetime.fromtimestamp(MONDAY / 1_000, dt.UTC).date() + dt.timedelta(days=3)
    History.open(part).detail.drop_before(later)
    fresh = make_folder(tmp_path / "fresh", rows[60:])
    found, expected = (what_if(each, [tight()], Mode.OPEN_LOOP) for each in (part, fresh))
    begin = MONDAY + 3 * 24 * HOUR
    assert found.summary.span_ms == expected.summary.span_ms == (begin, begin + 60_000)
    assert repr(found.usages) == repr(expected.usages)  # nan is not equal to itself
    policy = Policy(short_log=True)
    advices = [advise(each, policy) for each in (part, fresh)]
    assert [each.span_ms for each in advices] == [(begin, begin + 60_000)] * 2
    assert page(advices[0], []).replace(part, fresh) == page(advices[1], [])
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
    again, expected = (what_if(each, [tight()], Mode.OPEN_LOOP) for each in (whole, never_dropped))
    assert repr(again.usages) == repr(expected.usages)
    for table in (History.open(part).detail, History.open(part).seconds):
        table.drop_before(later + dt.timedelta(days=1))
    with pytest.raises(EmptyHistory):
        what_if(part, [tight()], Mode.OPEN_LOOP)


def test_period_of_a_table_without_statistics(tmp_path: Path) -> None:
    """Where the commit does not know the times of a file, they are read."""
    history = History.open(make_folder(tmp_path / "usage", [produced(1_500, 1), produced(9_999, 1)]))
    (file,) = history.detail.files()
    unknown = replace(file, first=None, last=None)
    assert _span_of(history.detail, unknown) == (file.first, file.last) == (MONDAY + 1_500, MONDAY + 9_999)


def test_a_short_log_is_refused(tmp_path: Path) -> None:
    """Unless it is wanted; then the share of its requests that were throttled is known for each entity."""
    rows = [produced(at, 1_000, throttle_ms=at // 1_000) for at in (0, 1_000, 2_000)]
    rows += [produced(at, 1_000, user="bob") for at in (0, 1_000)]
    folder = make_folder(tmp_path / "usage", rows)
    with pytest.raises(ShortLog, match="covers 3 s, with requests in 1 hour"):
        advise(folder, Policy())
    found = advise(folder, Policy(short_log=True))
    assert found.coverage.logged == Logged(5, 2)
    logged = {each.entity: found.logged(each) for each in found.recommended}
    assert logged == {ALICE: Logged(3, 2), QuotaEntity("bob"): Logged(2, 0)}
    assert found.held_back == 1
    long = [produced(at * HOUR, 1_000) for at in range(25)]
    assert not advise(make_folder(tmp_path / "long", long), Policy()).coverage.short


@pytest.mark.parametrize(
    ("wanted", "size", "submitted", "expected"),
    [
        (Engine.AUTO, 10, False, Engine.LOCAL),
        (Engine.AUTO, 1_000, False, Engine.SPARK),
        (Engine.AUTO, 10, True, Engine.SPARK),
        (Engine.LOCAL, 1_000, True, Engine.LOCAL),
        (Engine.SPARK, 10, False, Engine.SPARK),
    ],
)
def test_engine_is_chosen_by_size(
    wanted: Engine, size: int, *, submitted: bool, expected: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Unless it is named; under spark-submit it is Spark."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen(wanted, size, 100) is expected


def test_spark_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not chosen, and asking for it says how to get it."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(engine, "find_spec", lambda _name: None)
    assert chosen(Engine.AUTO, 1_000, 100) is Engine.LOCAL
    with pytest.raises(NoSpark, match="pip install pyspark"):
        run_of(Engine.SPARK)


@pytest.mark.parametrize(("path", "expected"), [("-", Engine.LOCAL), ("log", Engine.SPARK)])
def test_standard_input_is_not_read_by_spark(
    path: str, expected: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large it is: Spark's workers do not have it."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("quotascope.pipeline.runs.ingest.MOST_LOCAL_BYTES", -1)

    def begun(engine: Engine) -> Run:
        raise RuntimeError(engine.value)

    monkeypatch.setattr("quotascope.pipeline.runs.ingest.run_of", begun)
    (tmp_path / "log").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=expected.value):
        ingest_logs([path], "usage", IngestOptions())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)


def test_a_bucket_is_read_in_shares(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more rows than a worker should hold each user's come in one piece, each row once; of fewer all at once."""
    monkeypatch.setattr("quotascope.pipeline.runs.engine.SHARE", 120)
    for number in range(2):
        append(table, f"{number}", rows(*((f"user {n % 40}", None, n * DAY_MS // 99, number) for n in range(400))))
    for files in table.buckets().values():
        shares = [set(part["user"].to_pylist()) for part in whole_users(table, files, SCHEMA.names, across_users=False)]
        count = sum(part.num_rows for part in whole_users(table, files, ["user"], across_users=False))
        assert count == sum(file.rows for file in files)
        assert len(shares) == -(-count // 120)
        assert len(set.union(*shares)) == sum(map(len, shares))
        assert len([each for each in shares if each]) > 1


def test_long_names_are_held_once(table: Table) -> None:
    """A row has about 100 bytes in memory, however long its names are."""
    long = "x" * 32_767
    append(table, "long", rows(*((long, long, DAY_MS, number) for number in range(2_000))))
    [held] = whole_users(table, table.files(), SCHEMA.names, across_users=False)
    assert held.nbytes < 1 << 20


@pytest.mark.parametrize("across_users", [False, True])
def test_a_bucket_of_files_without_rows_has_no_users(table: Table, *, across_users: bool) -> None:
    """Other programs may commit such files."""
    empty = table.storage.write(table.layout, (3, 1), table.schema, [])
    assert table.advance("empty", [empty], after=None, epoch=0) == 0
    (held,) = whole_users(table, table.files(), ["user", "amount"], across_users=across_users)
    assert (len(held), held.column_names) == (0, ["user", "amount"])
