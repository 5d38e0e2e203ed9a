"""`quotascope shadow verify --prometheus` with a real Prometheus that has what an exporter writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.dashboards.stored import started
from tests.exporter.examples import limits, snapshot, usage
from tests.integration.backfilled import Backfill, backfilled
from tests.pipeline.report.results import HOSTILE
from tests.servers import Handler, served
from tools.demo_stack import fill

from quotascope.exporter.exposition import OPENMETRICS, Renderer
from quotascope.exporter.limits import Limits
from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

pytestmark = pytest.mark.real

USERS = QuotaEntity(DEFAULT, None)
TIGHT = 'half "of it" \\ \N{SNOWMAN}'
LAX = "lax"
LIMITS = {TIGHT: 1_000.0, LAX: 9_000.0}
SET_AT = 1_800_000_000
"""When the limit of the first shadow is set, at a full minute."""
SPAN_SECONDS = 600
STEP_SECONDS = 15
THROTTLE_SECONDS = 5.5
"""Of 1,500 bytes/s under 1,000, in 11 s."""


def bounded(limit: float) -> Limits:
    return limits(rules={QuotaType.PRODUCE: QuotaRules({USERS: limit})})


def shown(time_s: int) -> Snapshot:
    """Return users' demand before the limit is set, and throttles in half or few of the scrapes afterwards."""
    number = (time_s - SET_AT) // STEP_SECONDS
    over = {"alice": number % 2 == 0, HOSTILE: number in (-4, 5), "bob": False}
    limit, demand, seconds = (
        (LIMITS[TIGHT], LIMITS[TIGHT], THROTTLE_SECONDS) if time_s > SET_AT else (1e12, 1_500.0, 0.0)
    )
    usages = (
        usage(
            user=user,
            configured=bounded(limit),
            limit=limit,
            usage=demand if much else 500.0,
            throttle_time_seconds=seconds if much else 0.0,
        )
        for user, much in over.items()
    )
    return snapshot(*usages, limits=bounded(limit), taken_at=float(time_s))


def scrapes() -> Iterator[str]:
    """Return two exporters as OpenMetrics: one with shadows, and one whose throttled clients have the same names."""
    candidates = [
        Candidate(name=name, quotas=QuotaSet({USERS: {"producer_byte_rate": limit}}), based=True)
        for name, limit in LIMITS.items()
    ]
    shadows, east, west = Shadows(candidates), Renderer("east"), Renderer("west")
    elsewhere = snapshot(usage(user="alice", configured=bounded(1.0), limit=1.0, usage=9.0, throttle_time_seconds=60.0))
    for time_s in range(SET_AT - SPAN_SECONDS + STEP_SECONDS, SET_AT + SPAN_SECONDS + 1, STEP_SECONDS):
        state = shown(time_s)
        state = replace(state, shadows=shadows.evaluate(state, set()))
        for renderer, state_of_cluster in ((east, state), (west, elsewhere)):
            text = renderer.render(state_of_cluster, time_s, OPENMETRICS).decode()
            yield from (f"{line} {time_s}\n" for line in text.splitlines() if not line.startswith("#"))
    yield "# EOF\n"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("verify")
    fill(folder, scrapes())
    with started(folder) as prometheus:
        yield f"http://{prometheus.address}"


def times() -> tuple[str, ...]:
    since, until = (datetime.fromtimestamp(time_s, UTC).isoformat() for time_s in (SET_AT, SET_AT + SPAN_SECONDS))
    return "--since", since, "--until", until


def test_a_shadow_is_verified(run: Run, prometheus: str) -> None:
    """Users are throttled for as long as predicted; another shadow predicted no throttle, a third is unknown."""
    where = ("--prometheus", prometheus, *times())
    code, out, err = run("shadow", "verify", TIGHT, *where, "--tolerance", "0.1", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    figures = {entity["user"]: (entity["predicted"], entity["happened"]) for entity in document["entities"]}
    assert {user: [figure["seconds"] for figure in both] for user, both in figures.items()} == {
        "alice": [20 * THROTTLE_SECONDS] * 2,
        HOSTILE: [THROTTLE_SECONDS] * 2,
        "bob": [0.0] * 2,
    }
    assert all((predicted["throttled"] > 0) == (predicted["seconds"] > 0) for predicted, _ in figures.values())
    assert {entity["cluster"] for entity in document["entities"]} == {"east"}
    code, out, _ = run("shadow", "verify", LAX, *where)
    assert code == 1
    assert "differs: the throttle time is off by 100.0 %, 2 of 3 entities differ" in out
    code, _, err = run("shadow", "verify", "another", *where)
    assert (code, "Prometheus has no prediction of shadow 'another'" in err) == (2, True)


def test_a_cluster_without_throttle_times_since_then_is_not_verified(run: Run, prometheus: str) -> None:
    """Where nothing was scraped after the limits were set, no prediction came true or failed to."""
    since, until = (
        datetime.fromtimestamp(time_s, UTC).isoformat() for time_s in (SET_AT + SPAN_SECONDS + 3_600, SET_AT + 9_000)
    )
    begin = datetime.fromtimestamp(SET_AT - SPAN_SECONDS, UTC).isoformat()
    times_after = ("--since", since, "--until", until, "--from", begin)
    code, out, err = run("shadow", "verify", TIGHT, "--prometheus", prometheus, *times_after)
    assert (code, out) == (2, "")
    assert "has no throttle times of cluster 'east' since the limits were set" in err


def test_a_query_that_is_given_up(run: Run, tmp_path: Path) -> None:
    """The error about a query that Prometheus gave up has its message and advice."""
    fill(tmp_path, scrapes())
    with started(tmp_path, "--query.max-samples=20") as small:
        code, _, err = run("shadow", "verify", TIGHT, "--prometheus", f"http://{small.address}", *times())
    assert code == 2
    assert "HTTP 422: Prometheus says: query processing would load too many samples into memory in " in err
    assert "take a shorter time with --from and --until, or compare by --folder" in err


def test_a_prometheus_with_a_login(run: Run, tmp_path: Path) -> None:
    """The login of the command line is sent, and a refusal of it is an error."""
    seen = list[str | None]()

    class Guarded(Handler):
        def do_POST(self) -> None:  # noqa: N802 - as the server calls it
            seen.append(self.headers["Authorization"])
            self.answer(401, b"")

    (tmp_path / "password").write_text("tiger")
    login = ("--prometheus-user", "scott", "--prometheus-password-file", str(tmp_path / "password"))
    with served(ThreadingHTTPServer(("127.0.0.1", 0), Guarded)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        code, _, err = run("shadow", "verify", TIGHT, "--prometheus", url, *times(), *login)
    assert seen == ["Basic c2NvdHQ6dGlnZXI="]
    assert code == 2
    assert "Prometheus refuses these credentials" in err


def _held_back(throttle_s: float, **labels: str) -> Iterator[Backfill]:
    """Return the series of an exporter whose shadow predicts the throttle time that the broker then has."""
    entity = {"quota_type": "produce", "broker": "1", "user": "alice", "client_id": "", **labels}
    times = range(SET_AT - SPAN_SECONDS + STEP_SECONDS, SET_AT + SPAN_SECONDS + 1, STEP_SECONDS)
    predicted = [(float(at), throttle_s) for at in times if at <= SET_AT]
    happened = [(float(at), throttle_s if at > SET_AT else 0.0) for at in times]
    yield Backfill("kafka_quota_shadow_throttle_time_seconds", {"shadow": LAX, **entity}, predicted)
    yield Backfill("kafka_quota_throttle_time_seconds", entity, happened)


def test_clusters_that_share_their_label_are_refused(run: Run, tmp_path: Path) -> None:
    """Entities of two environments are not added up: the selector has to name one of them."""
    series = [
        *_held_back(1.0, job="quotascope", instance="prod:9749", cluster="apac", env="prod"),
        *_held_back(8.0, job="quotascope", instance="test:9749", cluster="apac", env="test"),
        *_held_back(2.0, job="quotascope", instance="eu:9749", cluster="eu", env="prod"),
    ]
    with backfilled(tmp_path / "prometheus", series) as server:
        where = ("--prometheus", f"http://{server.address}", *times(), "--json")
        code, out, err = run("shadow", "verify", LAX, *where)
        assert (code, out) == (2, "")
        assert "prod:9749 has env='prod', test:9749 'test'" in err
        code, out, err = run("shadow", "verify", LAX, *where, "--selector", '{env="prod"}')
        source = {"prometheus": {"url": f"http://{server.address}", "selector": '{env="test"}'}}
        (tmp_path / "config.yaml").write_text(json.dumps({"sources": [source]}))
        _, of_config, _ = run("shadow", "verify", LAX, *where, "--config", tmp_path / "config.yaml")
    assert (code, err) == (0, "")
    figures = {one["cluster"]: one["happened"]["seconds"] for one in json.loads(out)["entities"]}
    assert figures == {"apac": 40.0, "eu": 80.0}
    assert [one["happened"]["seconds"] for one in json.loads(of_config)["entities"]] == [320.0]


def test_two_exporters_of_a_cluster_count_once(run: Run, tmp_path: Path) -> None:
    """The throttle times that two exporters show of one cluster are not doubled; those of two brokers are added."""
    series = [
        one
        for instance in ("a:9749", "b:9749")
        for broker in "12"
        for one in _held_back(1.0, job="quotascope", instance=instance, broker=broker)
    ]
    with backfilled(tmp_path / "prometheus", series) as server:
        code, out, err = run("shadow", "verify", LAX, "--prometheus", f"http://{server.address}", *times(), "--json")
    assert (code, err) == (0, "")
    (alice,) = json.loads(out)["entities"]
    assert (alice["predicted"]["seconds"], alice["happened"]["seconds"]) == (80.0, 80.0)


def test_an_exporter_whose_target_changes_is_added_up(run: Run, tmp_path: Path) -> None:
    """Throttle times of an exporter whose pod was replaced in both periods are those of all its pods."""
    bounds = [SET_AT - SPAN_SECONDS, SET_AT - 240, SET_AT + 150, SET_AT + SPAN_SECONDS]
    series = [
        Backfill(
            whole.name,
            {**whole.labels, "pod": f"quotascope-{pod}", "instance": f"10.0.0.{pod}:9749"},
            [(at, value) for at, value in whole.samples if begin < at <= end],
        )
        for pod, (begin, end) in enumerate(pairwise(bounds))
        for whole in _held_back(1.0, job="quotascope", cluster="eu")
    ]
    with backfilled(tmp_path / "prometheus", [one for one in series if one.samples]) as server:
        code, out, err = run("shadow", "verify", LAX, "--prometheus", f"http://{server.address}", *times(), "--json")
    assert (code, err) == (0, "")
    (alice,) = json.loads(out)["entities"]
    for figures in (alice["predicted"], alice["happened"]):
        assert (figures["seconds"], figures["throttled"]) == (40.0, 40)


def test_throttles_before_the_limits_are_set_are_not_of_the_time_after(run: Run, tmp_path: Path) -> None:
    """A throttle time that was scraped before the limits were set is none of those since, until the next scrape."""
    entity = {"quota_type": "produce", "broker": "1", "user": "alice", "client_id": ""}
    scrape_times = [float(at) for at in range(SET_AT - SPAN_SECONDS + 30, SET_AT + SPAN_SECONDS, 60)]
    throttle_times = [(at, 8.0 if at < SET_AT else 0.0) for at in scrape_times]
    predicted = [(at, 0.0) for at in scrape_times if at < SET_AT]
    series = [
        Backfill("kafka_quota_shadow_throttle_time_seconds", {"shadow": LAX, **entity}, predicted),
        Backfill("kafka_quota_throttle_time_seconds", entity, throttle_times),
    ]
    with backfilled(tmp_path / "prometheus", series) as server:
        code, out, err = run("shadow", "verify", LAX, "--prometheus", f"http://{server.address}", *times(), "--json")
    assert (code, err) == (0, "")
    (alice,) = json.loads(out)["entities"]
    assert (alice["happened"]["seconds"], alice["happened"]["throttled"], alice["held_back"]) == (0.0, 0, True)
