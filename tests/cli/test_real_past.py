"""Answers from a real Prometheus with hours of samples, beside the answers from a request log of the same load."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.integration.backfilled import HOUR_S, backfilled
from tests.integration.prometheus import Prometheus
from tests.pipeline.prometheus.loads import HOURS, LOADS, limit_by_log, requests
from tests.pipeline.prometheus.series import (
    INTERVALS,
    SEEDS,
    begin_s,
    the_cases,
    the_dialects,
    the_exporter,
    the_loads,
    the_pairs,
    the_throttles,
)
from tests.pipeline.recommend.rows import history, produced
from tests.prometheus.releases import RELEASES, Release

from quotascope.exporter.sources.prometheus_api import PrometheusApi
from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.replay import replay
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus with everything of this module."""
    release: Release = request.param
    begin = begin_s()
    makers = (the_loads, the_cases, the_dialects, the_exporter, the_throttles, the_pairs)
    series = [one for maker in makers for one in maker(begin)]
    with backfilled(tmp_path_factory.mktemp("past") / "prometheus", series, release) as prometheus:
        yield prometheus


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the hour in which the samples were made, however long the tests take."""

    async def in_that_hour(_api: PrometheusApi) -> float:
        return begin_s() + HOURS * HOUR_S + 60

    monkeypatch.setattr(PrometheusApi, "now", in_that_hour)


def asked(run: Run, prometheus: Prometheus, command: str, job: str, *options: str) -> dict[str, Any]:
    """Return the JSON of a command about one job."""
    arguments = ("--prometheus", f"http://{prometheus.address}", "--selector", f'{{job="{job}"}}', "--json")
    code, output, errors = run(*command.split(), *arguments, *options)
    assert code == 0, errors
    answer: dict[str, Any] = json.loads(output)
    return answer


def recommended(run: Run, prometheus: Prometheus, job: str, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = asked(run, prometheus, "recommend", job, "--short-log", *options)["recommended"]
    return rows


def by_name(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["user"]: row for row in rows}


@pytest.mark.parametrize("every_s", INTERVALS)
def test_the_limit_is_that_of_the_request_log_unless_marked(run: Run, prometheus: Prometheus, every_s: int) -> None:
    """A limit is within 10 % of the log's or marked, and unmarked at 10 s or less without bursts."""
    rows = by_name(recommended(run, prometheus, f"every-{every_s}"))
    assert len(rows) == len(LOADS) * len(SEEDS)
    for name, row in rows.items():
        load, _, seed = name.rpartition(" ")
        ratio = (row["lowest"] or 0.0) / limit_by_log(load, int(seed))
        assert row["scrape_interval_seconds"] == every_s
        assert row["coverage"] > 0.99, name
        if row["sight"] == "whole":
            assert every_s <= 10, name
            assert 0.9 < ratio < 1.1, name
        else:
            assert row["advised_interval_seconds"] < every_s, name
        if every_s <= 5:
            assert row["sight"] == "whole", name
        if every_s == 10:
            assert (row["sight"] == "bursts") is (load in {"5 s a minute", "micro-batch"}), name
        assert row["refused"] is (row["sight"] in {"bursts", "unseen"}), name


def test_a_gap_is_a_lower_bound(run: Run, prometheus: Prometheus) -> None:
    """A gap makes usage a lower bound, and no command is made from samples with low coverage."""
    answer = asked(run, prometheus, "recommend", "gap", "--short-log")
    (row,) = answer["recommended"]
    assert row["coverage"] == pytest.approx(5 / 6, abs=0.02)  # blocks have no mark where a gap begins: 5 minutes more
    assert row["seen_seconds"] == pytest.approx(5 * HOUR_S, rel=0.01)
    assert (row["refused"], answer["commands"]) == (True, [])
    assert any("are missing" in caveat for caveat in answer["caveats"])


def test_a_restart_is_one_client(run: Run, prometheus: Prometheus) -> None:
    """A pod that restarts under another name is the same node, and both times count."""
    (row,) = recommended(run, prometheus, "restart")
    assert row["lowest"] == pytest.approx(1e6, rel=0.01)
    assert row["seen_seconds"] == pytest.approx(5.9 * HOUR_S, rel=0.01)


def test_a_pair_of_servers_is_one(run: Run, prometheus: Prometheus) -> None:
    """Samples of one node that two servers scraped count once."""
    (row,) = recommended(run, prometheus, "pair")
    assert row["lowest"] == pytest.approx(1e6, rel=0.01)
    assert row["seen_seconds"] == pytest.approx(5 * HOUR_S, rel=0.01)


def test_the_broker_that_needs_most_counts(run: Run, prometheus: Prometheus) -> None:
    """The recommended limit of a client on three brokers is that of the broker with the highest need."""
    (row,) = recommended(run, prometheus, "three")
    assert (row["node"], row["lowest"]) == ("3", pytest.approx(3e6, rel=0.01))


def test_two_clusters_are_refused_by_name(run: Run, prometheus: Prometheus) -> None:
    """Two clusters are refused by name, and a selector of one of them is answered."""
    address = f"http://{prometheus.address}"
    code, _, errors = run("recommend", "--prometheus", address, "--selector", 'job="two"', "--short-log")
    assert code == 1
    assert "several clusters" in errors
    assert "east" in errors
    assert "west" in errors
    options = ("--short-log", "--selector", 'job="two",cluster="west"', "--json")
    code, output, errors = run("recommend", "--prometheus", address, *options)
    assert code == 0, errors
    assert len(json.loads(output)["recommended"]) == 1


def test_a_rule_that_drops_labels_is_refused(run: Run, prometheus: Prometheus) -> None:
    """An agent's rule that drops labels is refused, as its clients would look like one."""
    address = f"http://{prometheus.address}"
    code, output, errors = run("recommend", "--prometheus", address, "--selector", 'job="dropped"', "--short-log")
    assert code == 1, output
    assert "no client was measured in this period" in errors
    assert output == ""


@pytest.mark.parametrize("dialect", ["jmx_default", "kafka_2_0_0", "confluent", "quotascope_rules"])
def test_each_dialect_has_the_same_limit(run: Run, prometheus: Prometheus, dialect: str) -> None:
    """Each dialect gives the same limit, and sums by user are those of the user's only client."""
    for options in ((), ("--for", "user"), ("--for", "user,client-id")):
        (row,) = recommended(run, prometheus, dialect, *options)
        assert row["lowest"] / limit_by_log("lognormal", 1) == pytest.approx(1, abs=0.1)
        assert row["client_id"] == (None if options == ("--for", "user") else "app")


def test_families_of_the_exporter_have_limit_and_rule(run: Run, prometheus: Prometheus) -> None:
    """A recommendation from our exporter's families has today's limit and rule, and marks held-back clients."""
    (row,) = recommended(run, prometheus, "quotascope")
    assert row["lowest"] / limit_by_log("lognormal", 1) == pytest.approx(1, abs=0.1)
    assert (row["now"], row["now_rule"], row["node"]) == (3e6, "6 user <default>", "1")
    assert row["held_back"]
    assert row["throttled_share"] == pytest.approx(1 / 6, abs=0.01)


def test_usage_is_that_of_the_requests_unless_marked(run: Run, prometheus: Prometheus) -> None:
    """At 10 s, bytes are within 1 % of the sent ones, except for bursts, which are marked."""
    answer = asked(run, prometheus, "usage", "every-10")
    for row in answer["clients"]:
        load, _, seed = row["user"].rpartition(" ")
        ratio = row["amount"] / sum(size for _, size in requests(load, int(seed)))
        assert row["lower_bound"] is False
        assert row["approximate"] is (load in {"5 s a minute", "micro-batch"})
        assert row["approximate"] or ratio == pytest.approx(1, abs=0.01), row["user"]


def test_usage_of_a_gap_is_a_lower_bound(run: Run, prometheus: Prometheus) -> None:
    """An hour without samples adds nothing, and is said."""
    (row,) = asked(run, prometheus, "usage", "gap")["clients"]
    assert row["amount"] == pytest.approx(5 * HOUR_S * 1e6, rel=0.01)
    assert row["lower_bound"] is True
    arguments = ("usage", "--prometheus", f"http://{prometheus.address}", "--selector", '{job="gap"}', "--csv", "-")
    code, output, errors = run(*arguments)
    assert code == 0, errors
    assert ",True," in output.splitlines()[1]


def test_usage_adds_up_brokers_and_clients(run: Run, prometheus: Prometheus) -> None:
    """Brokers of a cluster add up, and clients of a user if asked for; two servers do not."""
    (row,) = asked(run, prometheus, "usage", "three")["clients"]
    assert row["amount"] == pytest.approx(6e6 * HOURS * HOUR_S, rel=0.01)
    rows = asked(run, prometheus, "usage", "pairs", "--by-user", "--user", "alice")["clients"]
    assert [(row["client_id"], row["amount"]) for row in rows] == [
        (None, pytest.approx(3e6 * HOURS * HOUR_S, rel=0.01))
    ]
    (row,) = asked(run, prometheus, "usage", "pair")["clients"]
    assert row["amount"] == pytest.approx(5 * HOUR_S * 1e6, rel=0.01)


def test_usage_of_a_whole_period(run: Run, prometheus: Prometheus) -> None:
    """Begin and end are whole hours of the period."""
    begin = begin_s()
    times = [datetime.fromtimestamp(begin + hour * HOUR_S, UTC).isoformat() for hour in (1, 3)]
    answer = asked(run, prometheus, "usage", "three", "--begin", times[0], "--end", times[1])
    assert (answer["begin"], answer["end"]) == (begin + HOUR_S, begin + 3 * HOUR_S)
    assert answer["clients"][0]["amount"] == pytest.approx(6e6 * 2 * HOUR_S, rel=0.01)


def test_episodes(run: Run, prometheus: Prometheus, tmp_path: Path) -> None:
    """Two episodes of the past have their times, and the rule of a file; times without samples are not covered."""
    quotas = tmp_path / "quotas.yaml"
    quotas.write_text("quotas: [{user: alice, producer_byte_rate: 900000}]\n")
    answer = asked(run, prometheus, "episodes", "throttled", "--quotas", str(quotas))
    begin = begin_s()
    times = [(row["began_at"] - begin, row["ended_at"] - begin) for row in answer["episodes"]]
    assert times == [
        (pytest.approx(HOUR_S, abs=10), pytest.approx(HOUR_S + 300, abs=10)),
        (pytest.approx(HOUR_S + 420, abs=10), pytest.approx(HOUR_S + 600, abs=10)),
    ]
    assert [row["rules"] for row in answer["episodes"]] == [["produce 3 user alice"]] * 2
    assert [row["longest_throttle_seconds"] for row in answer["episodes"]] == [0.25, 0.25]
    assert (answer["throttled"], answer["not_covered"]) == (True, [])
    gap = asked(run, prometheus, "episodes", "gap")
    assert gap["throttled"] is None
    (missing,) = gap["not_covered"]
    assert (missing["broker"], missing["begin"] - begin) == ("1", pytest.approx(2 * HOUR_S, abs=900))
    assert missing["end"] - begin == pytest.approx(3 * HOUR_S, abs=1)


def test_a_backtest_throttles_those_that_a_replay_throttles(run: Run, prometheus: Prometheus, tmp_path: Path) -> None:
    """A backtest throttles the same clients as a replay of the request log, with limits below and above the needs."""
    limits = {
        f"{load} {seed}": round(limit_by_log(load, seed) * (0.8 if seed == 1 else 1.3))
        for load in LOADS
        for seed in SEEDS
    }
    rules = [{"user": user, "producer_byte_rate": limit} for user, limit in limits.items()]
    file = tmp_path / "candidates.yaml"
    file.write_text(json.dumps({"candidates": [{"name": "tried", "quotas": rules}]}))
    options = ("--prometheus", f"http://{prometheus.address}", "--selector", 'job="every-5"', "--json")
    code, output, errors = run("shadow", "backtest", str(file), *options)
    assert code == 0, errors
    (candidate,) = json.loads(output)["candidates"]
    shares = {row["user"]: row["above_share"] for row in candidate["entities"]}
    replayed = {user: replayed_share(user, limit) for user, limit in limits.items()}
    assert shares.keys() == replayed.keys()
    often = {user for user, share in replayed.items() if share > 0.01}
    assert {user for user, share in shares.items() if share > 0.01} == often
    assert often
    assert all(user.endswith("1") for user in often)


def replayed_share(user: str, limit: float) -> float:
    """Return the throttled share of a load in a replay of its requests under a limit."""
    load, _, seed = user.rpartition(" ")
    rows = history(produced(at, size) for at, size in requests(load, int(seed)))
    candidate = Candidate(name="tried", quotas=QuotaSet({QuotaEntity("alice"): {"producer_byte_rate": limit}}))
    (row,) = (row for row in replay(rows, [candidate]).to_pylist() if row["quota_type"] == "produce")
    return float(row["throttled_share"])


def test_a_backtest_says_what_samples_cannot_tell(run: Run, prometheus: Prometheus, tmp_path: Path) -> None:
    """Usage that was measured per pair is summed for a user; usage that was measured per user is unknown for a pair."""
    file = tmp_path / "candidates.yaml"
    by_user = [{"user": "<default>", "producer_byte_rate": 2500000}]
    by_pair = [{"user": "bob", "client-id": "x", "producer_byte_rate": 1}, *by_user]
    file.write_text(
        json.dumps({"candidates": [{"name": "users", "quotas": by_user}, {"name": "pair", "quotas": by_pair}]})
    )
    options = ("--prometheus", f"http://{prometheus.address}", "--selector", 'job="pairs"', "--json")
    code, output, errors = run("shadow", "backtest", str(file), *options)
    assert code == 0, errors
    users, pair = json.loads(output)["candidates"]
    assert {(row["user"], row["client_id"], row["above_share"]) for row in users["entities"]} == {
        ("alice", None, 1.0),
        ("bob", None, 0.0),
    }
    assert (users["unknown"], [row["user"] for row in pair["unknown"]]) == ([], ["bob"])
