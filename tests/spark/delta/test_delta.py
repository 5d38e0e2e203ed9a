"""
Tables of ours that a Spark with the real jar of Delta Lake has written to: our commands read them as their own.

One driver does all of it, in the session that the commands make.
"""

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.recommend.rows import history, mutated, produced
from tests.pipeline.replay.histories import sorted_rows
from tests.pipeline.table.rows import append
from tests.spark import sessions
from tests.spark.connector.provision import jars
from tests.spark.delta import jobs
from tests.spark.pipeline import kept
from tests.spark.process import SparkProcess, spark_process
from tests.spark.versions import CONNECTOR, ROOT

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.pipeline.errors import ChangedRows, NotWritten, UnreadableTable
from quotascope.pipeline.history import History, rollup
from quotascope.pipeline.history.charges import ROLLUP_COLUMNS
from quotascope.pipeline.recommend.policy import Policy
from quotascope.pipeline.replay import RESULTS, Mode, replay
from quotascope.pipeline.runs.recommend import advise
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.spark.session import SMALL_TABLES
from quotascope.pipeline.table import Follower, Table, follow
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate, read_candidates

pytestmark = pytest.mark.real

SHARDS = 4
HOSTILE = "a/../../b\n\u202e'\"<x>"
FIRST = [
    *(produced(time_ms, 20_000, user=user) for user in ("alice", "bob", HOSTILE) for time_ms in range(0, 20_000, 500)),
    *(mutated(time_ms, 9, user="alice") for time_ms in range(1, 20_000, 4_000)),
]  # fmt: skip
LATER = [
    *(
        produced(time_ms, 30_000, user=user, throttle_ms=7)
        for user in ("alice", "zoë")
        for time_ms in range(250, 20_000, 900)
    ),
    *(produced(90_000_000 + time_ms, 5_000, user="bob", client_id="app2") for time_ms in range(0, 9_000, 700)),
]  # fmt: skip
"""Between the others, of an entity that is new, and of another day."""
PAGE = (ROOT / "docs" / "guides" / "history.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"--conf (\S+)=(\S+)", PAGE))
CONF = {
    **{name: value for name, value in SHOWN.items() if name not in SMALL_TABLES},
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """The session of our commands, in which Delta's jar is."""
    folder = tmp_path_factory.mktemp("delta")
    conf = CONF | {"spark.jars": ",".join(map(str, jars()))}
    with spark_process(folder, version=CONNECTOR, master=sessions.OURS, conf=conf) as process:
        yield process


def _made(folder: Path, rows: list[Any]) -> str:
    opened = History.create(str(folder), shards=SHARDS)
    append(opened.detail, "by hand", history(rows))
    _follow(opened)
    return str(folder)


def _follow(opened: History) -> int:
    """Let the sums follow, as each ingest does; return how many there are more."""
    (count,) = follow(opened.detail, [Follower(opened.seconds, rollup, ROLLUP_COLUMNS)])
    return count


@pytest.fixture
def usage(tmp_path: Path) -> str:
    """A folder's name may be of any kind."""
    return _made(tmp_path / "usage of ü", FIRST)


def _answers(folder: str) -> list[Any]:
    tight = {"producer_byte_rate": 20_000.0, "controller_mutation_rate": 1.0}
    tried = [Candidate(name="tight", quotas=QuotaSet({QuotaEntity(DEFAULT): tight}))]
    seen = [what_if(folder, tried, mode).summary for mode in Mode]
    assert seen[0].candidates[0].hit
    advice = advise(folder, Policy(share=0.05, short_log=True))
    return [replace(advice, source=""), *(replace(each, source="") for each in seen)]


def _rows(table: Table) -> list[Any]:
    return sorted(table.read().to_pylist(), key=repr)


def _sorted(rows: list[Any]) -> list[Any]:
    return sorted(history(rows).to_pylist(), key=repr)


def test_the_session_of_the_commands(driver: SparkProcess, usage: str) -> None:
    """
    The session has the requested version, and workers run the driver's Python without a setting.

    A small table's log and folders take few tasks.
    """
    version, ours, worker, taken = driver.call(jobs.made)
    assert (version, worker, taken) == (CONNECTOR, ours, True)
    assert SMALL_TABLES.items() <= SHOWN.items()
    table, before = f"{usage}/history", driver.call(jobs.tasks)
    assert driver.call(jobs.count, table) == len(FIRST)
    driver.call(jobs.sql, table, "VACUUM $TABLE RETAIN 0 HOURS")
    assert driver.call(jobs.tasks) - before < 100


def test_history_is_kept(driver: SparkProcess, tmp_path: Path) -> None:
    """The history is kept as by the newest Spark."""
    kept.is_kept(tmp_path, driver.call(kept.job, str(tmp_path)))


def test_the_page(driver: SparkProcess, usage: str) -> None:
    """The page names the packages of the jars here, and its code for PySpark finds the throttled users."""
    (packages,) = re.findall(r"--packages (\S+)", PAGE)
    names = [name for _, *name in (word.split(":") for word in packages.split(","))]
    assert {"-".join(name) for name in names} <= {jar.stem for jar in jars()}
    assert f"pyspark=={CONNECTOR}" in PAGE
    driver.call(jobs.append, f"{usage}/history", LATER, SHARDS)
    _follow(History.open(usage))
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    shown = driver.call(jobs.python, code.replace("usage/", f"{usage}/"))
    assert re.findall(r"\|\s*(\S+)\|\s*(\d+)\|", shown)[:2] == [("alice", "154"), ("zoë", "154")]


def test_written_by_spark(driver: SparkProcess, usage: str, tmp_path: Path) -> None:
    """Rows that Spark appended, merged, sorted or cleaned are replayed and compacted like ours."""
    expected = _answers(_made(tmp_path / "alone", [*FIRST, *LATER]))
    opened, table = History.open(usage), f"{usage}/history"

    def is_whole() -> bool:
        assert _rows(opened.detail) == _sorted([*FIRST, *LATER])
        return sum(file.rows for file in opened.detail.files()) == len(FIRST + LATER)

    driver.call(jobs.append, table, LATER, SHARDS)
    assert is_whole()
    assert _follow(opened) > 0
    assert _answers(usage) == expected
    for rewrite in (
        lambda: driver.call(jobs.z_order, table, "timestamp"),
        lambda: driver.call(jobs.sql, table, "VACUUM $TABLE RETAIN 0 HOURS"),
        opened.detail.compact,
        lambda: driver.call(jobs.sql, table, "OPTIMIZE $TABLE"),
    ):
        rewrite()
        assert is_whole()
        assert _follow(opened) == 0
        assert _answers(usage) == expected
    assert driver.call(jobs.count, table) == len(FIRST + LATER)


def test_changed_by_spark(driver: SparkProcess, usage: str) -> None:
    """Rows that a MERGE adds are taken over; where rows changed, derived tables have to be made again."""
    opened = History.open(usage)
    merge = (
        "MERGE INTO $TABLE AS t USING more AS s ON t.user = s.user AND t.timestamp = s.timestamp AND t.connection = "
        "s.connection WHEN"
    )

    def spark(*statements: str) -> None:
        driver.call(jobs.sql, opened.detail.storage.uri, *statements)

    spark(
        "CREATE OR REPLACE TEMP VIEW more AS SELECT * EXCEPT (connection), bigint(77) AS connection FROM $TABLE WHERE "
        "user = 'bob' AND connection = 1",
        f"{merge} NOT MATCHED THEN INSERT *",
    )
    assert _follow(opened) > 0
    spark(f"{merge} MATCHED THEN UPDATE SET produce_bytes = 1")
    changed = [row["produce_bytes"] for row in _rows(opened.detail) if row["connection"] == 77]
    assert changed == [1] * 40
    with pytest.raises(ChangedRows, match=r"its commit \d+ \(MERGE\) changed rows; `quotascope history repair` makes"):
        _follow(opened)
    shutil.rmtree(opened.seconds.storage.uri)
    again = History.create(usage)
    assert _follow(again) > 0
    sums = again.seconds.read(["user", "requests", "amount"]).to_pylist()
    of_bob = [row for row in sums if row["user"] == "bob"]
    assert sum(row["requests"] for row in of_bob) == 80
    assert sum(row["amount"] for row in of_bob) == 40 * 20_001


def test_clone(driver: SparkProcess, usage: str, tmp_path: Path) -> None:
    """A shallow clone, which names the files of the other table by URIs, is read; only Spark can remove them."""
    clone = f"{tmp_path}/a clone"
    for table in ("history", "seconds", "connections"):
        made = f"CREATE TABLE delta.`{clone}/{table}` SHALLOW CLONE $TABLE"
        driver.call(jobs.sql, f"{usage}/{table}", made)
    expected = _answers(usage)
    assert _answers(clone) == expected
    driver.call(jobs.append, f"{clone}/history", LATER, SHARDS)
    detail = History.open(clone).detail
    for removal in (detail.compact, partial(detail.drop_before, dt.date(2030, 1, 1))):
        with pytest.raises(NotWritten, match="it is a shallow clone"):
            removal()
    driver.call(jobs.sql, f"{clone}/history", "OPTIMIZE $TABLE")
    assert _rows(detail) == _sorted([*FIRST, *LATER])
    assert _answers(usage) == expected


def test_refused(driver: SparkProcess, usage: str) -> None:
    """A table that cannot be read right is named, with what to do in Spark, and can be read afterwards."""
    table = f"{usage}/history"

    def spark(*statements: str) -> None:
        driver.call(jobs.sql, table, *statements)

    spark(
        "ALTER TABLE $TABLE SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
        "DELETE FROM $TABLE WHERE user = 'alice' AND api_key = 19",
    )
    with pytest.raises(UnreadableTable, match="it has deletion vectors") as raised:
        _answers(usage)
    (advice,) = re.findall(r"(ALTER TABLE .*) and (REORG TABLE .*)", str(raised.value))
    spark(*advice)
    left = [row for row in FIRST if row["api_key"] != 19]
    assert _rows(Table.open(table)) == _sorted(left)
    spark(
        "ALTER TABLE $TABLE SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE $TABLE RENAME COLUMN refused TO denied",
    )
    with pytest.raises(UnreadableTable, match="its column denied was added or renamed"):
        Table.open(table)
    spark("ALTER TABLE $TABLE RENAME COLUMN denied TO refused")
    assert _rows(Table.open(table)) == _sorted(left)


def test_documented_replay(driver: SparkProcess, tmp_path: Path) -> None:
    """The guide's lines replay a table of ours that Spark reads itself."""
    page = Path(__file__).parents[3] / "docs" / "guides" / "pipeline.md"
    (lines,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    append(History.create(str(tmp_path / "usage"), SHARDS).detail, "a", history(FIRST))
    quotas = "quotas: [{user: <default>, producer_byte_rate: 9000, controller_mutation_rate: 1}]"
    (tmp_path / "candidates.yaml").write_text(quotas)
    rows, printed = driver.call(jobs.example, lines.replace("usage/", f"{tmp_path}/usage/"), str(tmp_path))
    here = replay(history(FIRST), read_candidates(tmp_path / "candidates.yaml"))
    assert sorted_rows(pa.Table.from_pylist(rows, RESULTS)) == sorted_rows(here)
    assert "throttled_ms" in printed
