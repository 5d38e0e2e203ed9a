"""The commands as applications of Spark, on executors of their own, and as the documentation has them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.recommend.rows import make_folder, mutated, produced
from tests.spark.process import variables
from tests.spark.sessions import CLUSTER, QUIET
from tests.spark.versions import BY_GROUPS, RUNNING

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.recommend.policy import Policy, RuleShape
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.recommend import advise
from quotascope.pipeline.runs.whatif import what_if
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

pytestmark = pytest.mark.real

CAPTURE: Final = Path(__file__).parents[2] / "pipeline" / "captures" / "kafka-4.3.1-request.log.gz"
HOSTILE: Final = "a/../../b\n\u202e'\"<x>"
ROWS: Final = [
    *(produced(time_ms, 20_000, user=user) for user in ("alice", "bob", HOSTILE) for time_ms in range(0, 20_000, 500)),
    *(produced(time_ms, 5_000, user="bob", client_id="app2") for time_ms in range(0, 20_000, 700)),
    *(mutated(time_ms, 9, user="alice") for time_ms in range(0, 20_000, 4_000)),
]  # fmt: skip


@BY_GROUPS
@pytest.mark.parametrize("shape", [RuleShape.USER, RuleShape.CLIENT])
def test_spark_recommends_the_same(shape: RuleShape, spark: SparkSession, tmp_path: Path) -> None:
    """Whatever engine does the work, also where users share a client-id."""
    assert spark.version
    folder = make_folder(tmp_path / "usage", ROWS)
    policy = Policy(share=0.05, shape=shape, short_log=True)
    now = QuotaSet({QuotaEntity(None, "app1"): {"producer_byte_rate": 30_000.0}})
    here, there = (
        advise(folder, policy, configured=now, engine=engine) for engine in (EngineChoice.LOCAL, EngineChoice.SPARK)
    )
    assert here.recommended
    assert there == here


@BY_GROUPS
@pytest.mark.parametrize(
    ("entity", "mode"), [(QuotaEntity("bob"), Mode.CLOSED_LOOP), (QuotaEntity(None, DEFAULT), Mode.OPEN_LOOP)]
)
def test_spark_replays_the_same(entity: QuotaEntity, mode: Mode, spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives the same results and page, and reports each task. The other modes are in test_whatif.py."""
    assert spark.version
    folder = make_folder(tmp_path / "usage", ROWS)
    tried = [Candidate(name="tight", quotas=QuotaSet({entity: {"producer_byte_rate": 20_000.0}}))]
    reports: list[tuple[int, int]] = []
    here = what_if(folder, tried, mode, engine=EngineChoice.LOCAL)
    there = what_if(folder, tried, mode, engine=EngineChoice.SPARK, progress=lambda *done: reports.append(done))
    assert reports[-1][0] == reports[-1][1] > 0
    assert here.summary.candidates[0].hit
    assert there.summary == here.summary


def submit(master: str, folder: Path, *arguments: str) -> str:
    bin_ = Path(sys.executable).parent
    script = subprocess.check_output([bin_ / "quotascope", "spark", "submit-script"], text=True).strip()
    confs = [f"--conf={key}={value}" for key, value in QUIET.items()]
    done = subprocess.run(
        [bin_ / "spark-submit", "--master", master, *confs, script, *arguments],
        cwd=folder,
        env=variables(RUNNING, folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


def test_submitted_command(spark: SparkSession, tmp_path: Path) -> None:
    """A submitted command uses the existing session for a log, and an executor process to search for limits."""
    assert spark.version
    usage, options = f"{tmp_path}/usage", IngestOptions(broker="1")
    reports: list[tuple[int, int]] = []
    report = ingest_logs(
        [str(CAPTURE)], usage, options, engine=EngineChoice.SPARK, progress=lambda *done: reports.append(done)
    )
    assert (report.read, report.kept) == (5_403, 5_395)
    assert reports[-1][0] == reports[-1][1] > 0
    reported = submit(CLUSTER, tmp_path, "recommend", usage, "--short-log", "--json")
    read = json.loads(reported[reported.index("{") :])
    assert len(read["recommended"]) == 12
    assert read["coverage"]["requests"] == 5_395
    assert read["coverage"]["less_than_a_day"]
    assert 0 < read["coverage"]["limits_held_back"] < 12
