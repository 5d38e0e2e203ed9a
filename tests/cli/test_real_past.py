"""Answers from a real Prometheus with hours of samples, beside the answers from a request log of the same load."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.integration.backfilled import HOUR_S, Backfill, backfilled
from tests.integration.prometheus import Prometheus
from tests.pipeline.prometheus.loads import HOURS, LOADS, limit_by_log, requests, scraped
from tests.pipeline.recommend.rows import MONDAY, history, produced
from tests.prometheus.releases import RELEASES, Release

from quotascope.exporter.sources.prometheus_api import PrometheusApi
from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.replay import replay
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

pytestmark = [pytest.mark.real, pytest.mark.slow]

INTERVALS = (5, 10, 15, 30, 60)
SEEDS = (1, 2)
USAGE, THROTTLE, START = (
    f"kafka_server_{name}" for name in ("Produce_byte_rate", "Produce_throttle_time", "app_info_StartTimeMs")
)
Samples = list[tuple[float, float]]


@cache
def begin_s() -> float:
    """Return the hour at which all samples begin, so that they end at the last full one; the same for all tests."""
    return time.time() // HOUR_S * HOUR_S - HOURS * HOUR_S


def samples_of(load: str, seed: int, every_s: int, begin: float) -> Samples:
    """Return the scrapes of a load, at a phase of its own."""
    phase_s = 7 * seed % every_s
    return [(begin + at - MONDAY / 1_000, value) for at, value in scraped(load, seed, every_s, phase_s)]


def client(job: str, user: str, samples: Samples, instance: str = "broker-1:9404", **labels: str) -> Backfill:
    """Return the produce rates of a user, as jmx_exporter without rules names them."""
    return Backfill(USAGE, {"job": job, "instance": instance, "user": user, **labels}, samples)


def node(job: str, samples: Samples, node_id: str = "1", instance: str = "broker-1:9404", **labels: str) -> Backfill:
    """Return the start of a node, which has its id."""
    starts = [(at, 1.7e12) for at, _ in samples]
    return Backfill(START, {"job": job, "instance": instance, "id": node_id, **labels}, starts)


def flat(begin: float, value: float = 1e6, hours: float = HOURS, skipped: tuple[float, float] = (0, 0)) -> Samples:
    """Return samples of one value each 10 s, but for a part of the time."""
    times = (begin + at for at in range(5, round(hours * HOUR_S), 10))
    return [(at, value) for at in times if not skipped[0] <= at - begin < skipped[1]]


def the_loads(begin: float) -> Iterator[Backfill]:
    """Yield all loads at all intervals, a job for each interval."""
    for every_s in INTERVALS:
        job = f"every-{every_s}"
        for load in LOADS:
            for seed in SEEDS:
                yield client(job, f"{load} {seed}".replace(" ", "%20"), samples_of(load, seed, every_s, begin))
        yield node(job, [(begin + at, 0.0) for at in range(1, HOURS * HOUR_S, every_s)])


def the_cases(begin: float) -> Iterator[Backfill]:
    """Yield a gap, a restart, a pair of servers, three brokers, two clusters, and a rule that drops labels."""
    gap = flat(begin, skipped=(2 * HOUR_S, 3 * HOUR_S))
    yield from (client("gap", "alice", gap), node("gap", gap))
    # a restart: the rate begins at 0, and the node with another version in its labels
    before, after = flat(begin, hours=3), [(at + 3 * HOUR_S + 60, value) for at, value in flat(begin, hours=2.9)]
    yield from (client("restart", "alice", before, pod="kafka-a"), client("restart", "alice", after, pod="kafka-b"))
    yield from (node("restart", before, pod="kafka-a"), node("restart", after, pod="kafka-b"))
    for replica in ("a", "b"):
        half = flat(begin, skipped=(0, HOUR_S) if replica == "a" else (4 * HOUR_S, 5 * HOUR_S))
        yield client("pair", "alice", half, prometheus_replica=replica)
        yield node("pair", half, prometheus_replica=replica)
    for number in (1, 2, 3):
        instance = f"broker-{number}:9404"
        yield client("three", "alice", flat(begin, 1e6 * number), instance)
        yield node("three", flat(begin), str(number), instance)
    for cluster in ("east", "west"):
        instance = f"{cluster}-1:9404"
        yield client("two", "alice", flat(begin), instance, cluster=cluster)
        yield node("two", flat(begin), instance=instance, cluster=cluster)
    for user in ("alice", "bob"):
        # a rule wrote both under other labels than Kafka's, and dropped those
        yield client("dropped", "", flat(begin), broker_rack=user)
    yield node("dropped", flat(begin))


def the_dialects(begin: float) -> Iterator[Backfill]:
    """Yield one load in the spelling of each dialect, a job for each."""
    samples = samples_of("lognormal", 1, 10, begin)
    spellings: Mapping[str, tuple[str, Mapping[str, str]]] = {
        "jmx_default": (USAGE, {"user": "alice", "client_id": "app"}),
        "kafka_2_0_0": ("kafka_server_quota_byte_rate", {"resource": "Produce", "user": "alice", "clientId": "app"}),
        "confluent": ("kafka_server_produce_byte_rate", {"user": "alice", "client_id": "app"}),
        "quotascope_rules": ("kafka_quota_produce_bytes_per_second", {"user": "alice", "client_id": "app"}),
    }
    for job, (name, labels) in spellings.items():
        target = {"job": job, "instance": "broker-1:9404"}
        yield Backfill(name, {**target, **labels}, samples)
        yield Backfill(
            "kafka_controller_kafkacontroller_activecontrollercount", target, [(at, 1.0) for at, _ in samples]
        )
    yield Backfill(
        "kafka_quota_broker_start_time_seconds",
        {"job": "quotascope_rules", "instance": "broker-1:9404", "broker": "1"},
        [(at, 1.7e9) for at, _ in samples],
    )


def the_exporter(begin: float) -> Iterator[Backfill]:
    """Yield the families of an exporter of ours, with throttles, a limit and its rule."""
    target, entity = {"job": "quotascope", "instance": "exporter:9749"}, {"user": "alice", "client_id": ""}
    samples = samples_of("lognormal", 1, 10, begin)
    throttled = [(at, 0.5 if (at - begin) % HOUR_S < 600 else 0.0) for at, _ in samples]
    now = time.time()
    extended = [(at, 3e6) for at in range(int(begin), int(now), 10)]
    yield Backfill("quotascope_source_up", {**target, "source": "broker-1"}, extended)
    yield Backfill("kafka_quota_produce_bytes_per_second", {**target, **entity, "broker": "1"}, samples)
    of_produce = {**target, **entity, "quota_type": "produce"}
    yield Backfill("kafka_quota_throttle_time_seconds", {**of_produce, "broker": "1"}, throttled)
    yield Backfill("kafka_quota_produce_limit_bytes_per_second", {**target, **entity}, extended)
    rule = {"rule": "6 user <default>", "level": "6", "rule_user": "<default>", "rule_client_id": ""}
    yield Backfill("kafka_quota_rule_info", {**of_produce, **rule}, [(at, 1.0) for at, _ in extended])


def the_throttles(begin: float) -> Iterator[Backfill]:
    """Yield two throttle episodes of a user on a broker, two minutes apart, and one of another client."""
    steady = flat(begin)
    yield client("throttled", "alice", steady)
    yield node("throttled", steady)
    spans = ((HOUR_S, HOUR_S + 300), (HOUR_S + 420, HOUR_S + 600))
    inside = [(at, 250.0 if any(since <= at - begin < until for since, until in spans) else 0.0) for at, _ in steady]
    labels = {"job": "throttled", "instance": "broker-1:9404", "user": "alice"}
    yield Backfill(THROTTLE, labels, inside)


def the_pairs(begin: float) -> Iterator[Backfill]:
    """Yield two clients of a user that are measured apart, and a user whose clients are measured together."""
    yield client("pairs", "alice", flat(begin, 1e6), client_id="a")
    yield client("pairs", "alice", flat(begin, 2e6), client_id="b")
    yield client("pairs", "bob", flat(begin, 5e5))
    yield node("pairs", flat(begin))


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
    """At 10 s or less, each limit is within 10 % of the log's; at more, or for bursts, each that is not is marked."""
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
    """An hour without samples is missing in the coverage, and no command is made of so little."""
    answer = asked(run, prometheus, "recommend", "gap", "--short-log")
    (row,) = answer["recommended"]
    assert row["coverage"] == pytest.approx(5 / 6, abs=0.02)  # blocks have no mark where a gap begins: 5 minutes more
    assert row["seen_seconds"] == pytest.approx(5 * HOUR_S, rel=0.01)
    assert (row["refused"], answer["commands"]) == (True, [])
    assert any("gaps" in caveat for caveat in answer["caveats"])


def test_a_restart_is_one_client(run: Run, prometheus: Prometheus) -> None:
    """A pod with another name is the same node, and both times count."""
    (row,) = recommended(run, prometheus, "restart")
    assert row["lowest"] == pytest.approx(1e6, rel=0.01)
    assert row["seen_seconds"] == pytest.approx(5.9 * HOUR_S, rel=0.01)


def test_a_pair_of_servers_is_one(run: Run, prometheus: Prometheus) -> None:
    """What two servers scraped of one node counts once."""
    (row,) = recommended(run, prometheus, "pair")
    assert row["lowest"] == pytest.approx(1e6, rel=0.01)
    assert row["seen_seconds"] == pytest.approx(5 * HOUR_S, rel=0.01)


def test_the_broker_that_needs_most_counts(run: Run, prometheus: Prometheus) -> None:
    """Of three brokers, the limit is that of the third."""
    (row,) = recommended(run, prometheus, "three")
    assert (row["node"], row["lowest"]) == ("3", pytest.approx(3e6, rel=0.01))


def test_two_clusters_are_refused_by_name(run: Run, prometheus: Prometheus) -> None:
    """Both clusters are named, and the selector of one is answered."""
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
    """Clients whose labels are not Kafka's are not shown as one: none was measured."""
    address = f"http://{prometheus.address}"
    code, output, errors = run("recommend", "--prometheus", address, "--selector", 'job="dropped"', "--short-log")
    assert code == 1, output
    assert "no client was measured in this period" in errors
    assert output == ""


@pytest.mark.parametrize("dialect", ["jmx_default", "kafka_2_0_0", "confluent", "quotascope_rules"])
def test_each_dialect_has_the_same_limit(run: Run, prometheus: Prometheus, dialect: str) -> None:
    """The spelling of an agent changes nothing; sums by user are those of its only client."""
    for options in ((), ("--for", "user"), ("--for", "user,client-id")):
        (row,) = recommended(run, prometheus, dialect, *options)
        assert row["lowest"] / limit_by_log("lognormal", 1) == pytest.approx(1, abs=0.1)
        assert row["client_id"] == (None if options == ("--for", "user") else "app")


def test_families_of_the_exporter_have_limit_and_rule(run: Run, prometheus: Prometheus) -> None:
    """The limit of today and its rule are those that the exporter shows, and the throttled are held back."""
    (row,) = recommended(run, prometheus, "quotascope")
    assert row["lowest"] / limit_by_log("lognormal", 1) == pytest.approx(1, abs=0.1)
    assert (row["now"], row["now_rule"], row["node"]) == (3e6, "6 user <default>", "1")
    assert row["held_back"]
    assert row["throttled_share"] == pytest.approx(1 / 6, abs=0.01)


def test_usage_is_that_of_the_requests_unless_marked(run: Run, prometheus: Prometheus) -> None:
    """At 10 s, bytes are within 1 % of those that the load sent, but for bursts, which are marked."""
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
    """Both episodes have their times, and the rule of a file; times without samples are not covered."""
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
    """With limits below and above the needs, the same clients are throttled as by a replay of the request log."""
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
    """What was measured apart is added up; what was measured together is unknown."""
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
