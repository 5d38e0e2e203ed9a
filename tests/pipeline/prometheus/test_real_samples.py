"""Answers from a table of samples, beside those of the real Prometheus that has them, here and on Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import exit_code, logging_kept
from tests.integration.backfilled import HOUR_S, backfilled
from tests.pipeline.prometheus.series import (
    begin_s,
    the_cases,
    the_dialects,
    the_exporter,
    the_pairs,
    the_throttles,
)
from tests.prometheus.releases import RELEASES, Release

from quotascope.exporter.sources.prometheus_api import PrometheusApi
from quotascope.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.real, pytest.mark.slow]

Run = Callable[..., tuple[int, str, str]]
HOURS = 6
CANDIDATES = [{"user": "<default>", "producer_byte_rate": 1_500_000}]
COMMANDS = (
    "recommend --short-log",
    "recommend --short-log --all-hours-together --for user",
    "recommend --short-log --for client-id",
    "usage",
    "episodes",
    "shadow backtest {candidates}",
)


@dataclass(frozen=True)
class Past:
    """A running Prometheus, its blocks, and its promtool."""

    url: str
    blocks: Path
    promtool: str


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """Yield a Prometheus with gaps, restarts, pairs of servers, three brokers, two clusters, dialects and throttles."""
    release: Release = request.param
    makers = (the_cases, the_dialects, the_exporter, the_throttles, the_pairs)
    series = [one for maker in makers for one in maker(begin_s())]
    folder = tmp_path_factory.mktemp("past") / "prometheus"
    with backfilled(folder, series, release) as prometheus:
        yield Past(f"http://{prometheus.address}", folder / "data", release.program("promtool"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Return a function that runs the command line in this process, in the hour in which the samples end."""

    async def in_that_hour(_api: PrometheusApi) -> float:
        return begin_s() + HOURS * HOUR_S + 600

    monkeypatch.setattr(PrometheusApi, "now", in_that_hour)

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["quotascope", *map(str, arguments)])
        return (exit_code(), *capsys.readouterr())

    with logging_kept():
        yield command


def of_server(past: Past, job: str) -> list[str]:
    return ["--prometheus", past.url, "--selector", f'{{job="{job}"}}']


def ingested(run: Run, table: Path, *options: str) -> dict[str, Any]:
    code, output, errors = run("ingest-prometheus", *options, "--into", table, "--json")
    assert code == 0, errors
    report: dict[str, Any] = json.loads(output)
    return report


def answered(run: Run, *command: object, may_fail: bool = False) -> dict[str, Any]:
    code, output, errors = run(*command, "--json")
    if code and may_fail:
        return {"refused": errors.rpartition(": ")[2]}
    assert code == 0, errors
    answer: dict[str, Any] = json.loads(output)
    return {name: value for name, value in answer.items() if name != "prometheus"}


def alike(value: object) -> object:
    """Return a value for comparison that ignores the order in which numbers were added up."""
    if isinstance(value, dict):
        return {name: alike(part) for name, part in value.items()}
    if isinstance(value, list):
        return [alike(part) for part in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def compare(run: Run, tmp_path: Path, server: list[str], table: list[object], commands: tuple[str, ...]) -> None:
    """Assert that commands answer the same from a server and from a table."""
    candidates = tmp_path / "candidates.yaml"
    candidates.write_text(json.dumps({"candidates": [{"name": "tried", "quotas": CANDIDATES}]}))
    for command in commands:
        words = command.format(candidates=candidates).split()
        expected = alike(answered(run, *words, *server, may_fail="client-id" in words))
        assert answered(run, *words, *table, may_fail="client-id" in words) == expected, command


@pytest.mark.parametrize("job", ["gap", "restart", "pair", "three", "kafka_2_0_0", "quotascope", "throttled", "pairs"])
def test_a_table_answers_as_the_server(run: Run, past: Past, tmp_path: Path, job: str) -> None:
    """Limits, usage, episodes and back-tests are equal: gaps, restarts, pairs, dialects, limits of exporters, sums."""
    table = tmp_path / "samples"
    server = of_server(past, job)
    ingested(run, table, *server)
    compare(run, tmp_path, server, ["--samples", table], COMMANDS)


@pytest.mark.timeout(600)  # on a busy machine
def test_spark_reads_and_answers_as_the_server(
    run: Run, past: Past, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Spark's workers read the server, write the table, and compute the server's answers from it."""
    request.getfixturevalue("spark")
    table = tmp_path / "samples"
    server = of_server(past, "pairs")
    ingested(run, table, *server, "--engine", "spark")
    of_table: list[object] = ["--samples", table, "--samples-engine", "spark"]
    compare(run, tmp_path, server, of_table, (COMMANDS[2], *COMMANDS[3:]))


def test_hours_are_read_once(run: Run, past: Past, tmp_path: Path) -> None:
    """The same period again adds nothing, and a later one adds its hours, as if all were read at once."""
    begin = begin_s()
    times = [datetime.fromtimestamp(begin + hour * HOUR_S, UTC).isoformat() for hour in (0, 2, HOURS)]
    server = of_server(past, "pair")
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    first = ingested(run, parts, *server, "--begin", times[0], "--end", times[1])
    assert (first["hours"], first["known_hours"]) == (2, 0)
    again = ingested(run, parts, *server, "--begin", times[0], "--end", times[1])
    assert (again["samples"], again["hours"], again["known_hours"]) == (0, 0, 2)
    rest = ingested(run, parts, *server, "--begin", times[0], "--end", times[2])
    assert (rest["hours"], rest["known_hours"]) == (HOURS - 2, 2)
    ingested(run, whole, *server, "--begin", times[0], "--end", times[2])
    assert rows_of(parts) == rows_of(whole)
    answers = [answered(run, "usage", "--samples", table) for table in (parts, whole)]
    assert answers[0] == answers[1]


def rows_of(table: Path) -> list[tuple[int, int, float | None]]:
    """Return the samples of a table."""
    rows = Table.open(str(table)).read(["timestamp", "series", "value"]).to_pylist()
    return sorted((row["timestamp"], row["series"], row["value"]) for row in rows if row["value"] is not None)


@pytest.mark.parametrize("form", ["dump", "dump.gz"])
def test_dumps_of_blocks_answer_as_the_server(run: Run, past: Past, tmp_path: Path, form: str) -> None:
    """A dump of blocks by promtool gives the same limits as the server, and adds nothing a second time."""
    dump, table = tmp_path / f"three.{form}", tmp_path / "samples"
    command = f"{past.promtool} tsdb dump --match '{{job=\"three\"}}' {past.blocks}"
    pipe = " | gzip" if form.endswith("gz") else ""
    subprocess.run(["bash", "-euo", "pipefail", "-c", f"{command}{pipe} > {dump}"], check=True, timeout=120)
    assert ingested(run, table, str(dump))["samples"] == HOURS * HOUR_S / 10 * 6
    assert ingested(run, table, str(dump))["known_dumps"] == [str(dump)]
    from_server = answered(run, "recommend", "--short-log", *of_server(past, "three"))
    from_table = answered(run, "recommend", "--short-log", "--samples", table)
    assert from_table["recommended"] == alike(from_server["recommended"])
    assert from_table["nodes"] == alike(from_server["nodes"])


def test_clusters_and_contradictions_are_refused_by_name(run: Run, past: Past, tmp_path: Path) -> None:
    """Two clusters are refused when they are read at once, and when they are read into one table."""
    table = tmp_path / "samples"
    code, _, errors = run("ingest-prometheus", *of_server(past, "two"), "--into", table)
    assert code == 1
    assert "several clusters" in errors
    assert not table.exists()
    server = of_server(past, "two")[:2]
    ingested(run, table, *server, "--selector", '{cluster="east"}')
    code, output, errors = run("ingest-prometheus", *server, "--selector", '{cluster="west"}', "--into", table)
    assert (code, output) == (1, "")
    assert 'cluster="east"' in errors
    assert 'cluster="west"' in errors


def test_a_login_is_in_no_plan_of_spark(run: Run, past: Past, spark: SparkSession, tmp_path: Path) -> None:
    """A token is sent to the workers, and is in no plan and no name of a job or stage of Spark."""
    secret = tmp_path / "token"
    secret.write_text("Bearer sesame-of-the-past")
    header = ("--prometheus-header-file", f"Authorization={secret}", "--engine", "spark")
    ingested(run, tmp_path / "samples", *of_server(past, "pair"), *header)
    session = spark._jsparkSession
    executions = session.sharedState().statusStore().executionsList()
    plans = [executions.apply(place).physicalPlanDescription() for place in range(executions.size())]
    assert any("MapInArrow" in plan for plan in plans)
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = [store.job(number).toString() + store.job(number).name() for number in range(store.jobsList(None).size())]
    assert not [text for text in (*plans, *jobs) if "sesame" in text]
