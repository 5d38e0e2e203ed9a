"""`quotascope cost` on a real Prometheus: counters of exporters that start again, two of a cluster, two clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.integration.backfilled import HOUR_S, Backfill, backfilled

from quotascope.pipeline.cost.month import Month

pytestmark = pytest.mark.real
BEGIN_S = Month(2025, 11).span_s[0]
STEP_S = 60
HOURS = 6
RESTART_S = 2.5 * HOUR_S
"""When an exporter starts again, after the first moment of the month."""
TEAMS = """
currency: EUR
teams:
- {team: payments, clients: [{user: alice}], price_per_gb_in: 2.0}
"""


def _counter(rate: float, *, restarts: bool, name: str, **labels: str) -> Backfill:
    """Return a counter that grows at a rate, and begins again at 0 after a restart without losing growth."""
    times = range(0, HOURS * HOUR_S + STEP_S, STEP_S)
    values = [(at - RESTART_S if restarts and at >= RESTART_S else at) * rate for at in times]
    samples = [(BEGIN_S + at, value) for at, value in zip(times, values, strict=True)]
    return Backfill(f"kafka_quota_team_{name}_total", {"job": "quotascope", **labels}, samples)


def _series() -> Iterator[Backfill]:
    for cluster, rate in (("eu", 1e6), ("us", 5e5)):
        for instance in ("a:9749", "b:9749") if cluster == "eu" else ("c:9749",):
            labels = {"cluster": cluster, "instance": instance}
            restarts = instance == "a:9749"
            yield _counter(rate, restarts=restarts, name="produced_bytes", team="payments", **labels)
            yield _counter(1.0, restarts=restarts, name="seen_seconds", **labels)
    node = {"job": "kafka", "instance": "broker-1:9404"}
    samples = [(BEGIN_S + at, 1e6) for at in range(0, HOURS * HOUR_S + STEP_S, STEP_S)]
    yield Backfill("kafka_server_Produce_byte_rate", {**node, "user": "alice"}, samples)
    yield Backfill("kafka_server_app_info_StartTimeMs", {**node, "id": "1"}, [(at, 1.7e12) for at, _ in samples])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server that has the first hours of a month."""
    with backfilled(tmp_path_factory.mktemp("cost") / "prometheus", list(_series())) as server:
        yield f"http://{server.address}"


def test_counters_are_added_up_over_restarts_and_once_for_two_exporters(
    run: Run, prometheus: str, tmp_path: Path
) -> None:
    """Bytes and hours of a cluster count once, over restarts and for two exporters."""
    (tmp_path / "teams.yaml").write_text(TEAMS)
    place = ("--prometheus", prometheus, "--counters", "--month", "2025-11", "--teams", tmp_path / "teams.yaml")
    code, out, err = run("cost", *place, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    moved = {charge["cluster"]: charge["bytes"] for charge in answer["charges"]}
    assert moved == pytest.approx({"eu": HOURS * HOUR_S * 1e6, "us": HOURS * HOUR_S * 5e5}, rel=0.01)
    assert [one["seen_hours"] for one in answer["clusters"]] == pytest.approx([HOURS, HOURS], rel=0.01)
    assert float(answer["total"]) == pytest.approx(HOURS * HOUR_S * 1.5e6 / 1e9 * 2, rel=0.01)
    assert all(charge["at_least"] for charge in answer["charges"])


def test_rates_give_the_same_bytes(run: Run, prometheus: str, tmp_path: Path) -> None:
    """Rates of the entities of one cluster give the same bytes, with the hours of its nodes."""
    (tmp_path / "teams.yaml").write_text(TEAMS)
    place = ("--prometheus", prometheus, "--month", "2025-11", "--teams", tmp_path / "teams.yaml")
    code, out, err = run("cost", *place, "--selector", '{job="kafka"}', "--cluster-name", "eu", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    (charge,) = answer["charges"]
    assert charge["bytes"] == pytest.approx(HOURS * HOUR_S * 1e6, rel=0.01)
    assert answer["clusters"][0]["seen_hours"] == pytest.approx(HOURS, rel=0.01)
    assert answer["total"].startswith(("43.", "42.9"))


def test_two_clusters_that_share_their_label_are_refused(run: Run, tmp_path: Path) -> None:
    """Exporters of other environments are no replicas of one: the selector has to name one environment."""
    series = [
        _counter(rate, restarts=False, name=name, cluster="apac", instance=f"{env}:9749", env=env, **team)
        for env, speed in (("prod", 1e6), ("test", 4e6))
        for name, rate, team in (("produced_bytes", speed, {"team": "payments"}), ("seen_seconds", 1.0, {}))
    ]
    (tmp_path / "teams.yaml").write_text(TEAMS)
    with backfilled(tmp_path / "prometheus", series) as server:
        place = ("--prometheus", f"http://{server.address}", "--counters", "--month", "2025-11")
        code, out, err = run("cost", *place, "--teams", tmp_path / "teams.yaml")
        assert (code, out) == (1, "")
        assert "it has series of several clusters or jobs" in err
        assert "env=" in err
        chosen = ("--selector", '{env="prod"}', "--json")
        code, out, _ = run("cost", *place, "--teams", tmp_path / "teams.yaml", *chosen)
    assert code == 0
    (charge,) = json.loads(out)["charges"]
    assert charge["bytes"] == pytest.approx(HOURS * HOUR_S * 1e6, rel=0.01)
