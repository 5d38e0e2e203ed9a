"""A real Prometheus and a real Collector read the exporter, and answer an operator's questions."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from email.message import Message
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.builders.agents import Agent
from tests.cluster.cluster import Cluster
from tests.collector.collector import Collector, collecting
from tests.exporter.otlp.collected import series
from tests.exporter.otlp.messages import Key
from tests.exporter.recorded import jolokia_bytes
from tests.exporter.web.serving import HASH, PASSWORD, tls_section, web_file
from tests.integration import web
from tests.integration.alerting.hurry import hurried_rules
from tests.integration.eventually import eventually
from tests.integration.exporter import OPENMETRICS, Exporter, serving, settings_for
from tests.integration.page import Page
from tests.integration.prometheus import Prometheus, running
from tests.integration.scene import HOSTILE, TEAM
from tests.prometheus.releases import NEWEST, RELEASES, Release
from tests.servers import Handler, served

pytestmark = pytest.mark.real

_PASSED = ("Content-Type", "Content-Encoding")


class Relay(ThreadingHTTPServer):
    """Passes each request on with `Accept: text/plain`; Prometheus 2.42 cannot be made to prefer it."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.asked = Message()
        """The headers of the last request."""
        self.answered = Message()
        """The headers of the last answer."""
        super().__init__(("127.0.0.1", 0), _Relaying)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Relaying(Handler):
    server: Relay

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        headers = {name: self.headers[name] for name in ("Accept-Encoding",)}
        answer = web.ask(self.server.target + self.path, headers={**headers, "Accept": "text/plain;version=0.0.4"})
        self.server.asked, self.server.answered = self.headers, answer.headers
        passed = {name: answer.headers[name] for name in _PASSED if name in answer.headers}
        self.answer(answer.status, answer.body, **passed)


README = Path(__file__).parents[2] / "README.md"
LIMIT_OF_THROTTLED = """
kafka_quota_produce_limit_bytes_per_second
  * on (user, client_id) group_left (level, rule_user, rule_client_id)
kafka_quota_rule_info{quota_type="produce"}
  and on (user, client_id)
kafka_quota_throttle_time_seconds{quota_type="produce"} > 0
"""
CLOSE_TO_LIMIT = 'topk(3, kafka_quota_utilization_ratio{quota_type="produce"})'
FORWARDED = """
kafka_quota_throttle_cause_info{cause="controller_mutation", client_id="scene-admin"}
"""


def readme_query() -> str:
    """Return the query of the README for throttled clients and their rules."""
    blocks = README.read_text().split("```")[1::2]
    (query,) = (block for block in blocks if "kafka_quota_rule_info" in block)
    return query


@pytest.fixture(scope="module")
def relay(exporter: Exporter) -> Iterator[Relay]:
    """Yield the exporter's page in the plain text format."""
    with served(Relay(exporter.url)) as relay:
        yield relay


@pytest.fixture(scope="module")
def guarded(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield an exporter of the same broker that wants TLS, a client certificate and a password."""
    folder = tmp_path_factory.mktemp("guarded")
    tls_settings = {"client_ca_file": str(kafka.certificates.ca), "client_auth_type": "RequireAndVerifyClientCert"}
    file = web_file(folder, **tls_section(kafka.certificates, **tls_settings), basic_auth_users={"prometheus": HASH})
    server = {"address": "127.0.0.1", "port": 0, "web_config_file": str(file)}
    settings = {**settings_for(kafka.brokers, None), "server": server}
    exporter = Exporter(folder / "serve", settings)
    try:
        yield exporter
    finally:
        exporter.child.end()


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def prometheus(
    request: pytest.FixtureRequest,
    exporter: Exporter,
    relay: Relay,
    guarded: Exporter,
    kafka: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """
    Yield a Prometheus that scrapes the exporter itself, once more through the relay, and one that is protected.

    The names of the other two begin with those of their jobs, so that queries do not meet them beside the first.
    """
    certificates = kafka.certificates
    files = {"ca_file": certificates.ca, "cert_file": certificates.client, "key_file": certificates.client_key}
    login = {
        "scheme": "https",
        "tls_config": {name: str(file) for name, file in files.items()},
        "basic_auth": {"username": "prometheus", "password": PASSWORD},
    }
    jobs: list[dict[str, Any]] = [
        {"job_name": "quotascope", "static_configs": [{"targets": [exporter.url.removeprefix("http://")]}]},
        {"job_name": "text", "static_configs": [{"targets": [relay.address]}]},
        {"job_name": "guarded", "static_configs": [{"targets": [guarded.url.removeprefix("https://")]}], **login},
    ]
    for job in jobs[1:]:
        prefixed = {"source_labels": ["__name__"], "target_label": "__name__", "replacement": f"{job['job_name']}_$1"}
        job["metric_relabel_configs"] = [prefixed]
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": jobs}
    with running(tmp_path_factory.mktemp("prometheus") / "prometheus", config, request.param) as prometheus:
        yield prometheus


def test_both_formats_are_scraped(prometheus: Prometheus, relay: Relay) -> None:
    """
    Prometheus takes OpenMetrics, which it prefers, and the text format 0.0.4, both compressed.

    With TLS and password as well.
    """

    def scraped() -> None:
        for job, target in prometheus.targets().items():
            assert target["health"] == "up", f"{job}: {target['lastError']}"
        up = {labels["job"] for labels, _ in prometheus.query("up == 1")}
        assert up == {"quotascope", "text", "guarded"}
        for prefix in ("", "text_", "guarded_"):
            assert prometheus.query(f"{prefix}quotascope_build_info"), prefix

    eventually(scraped)
    assert "application/openmetrics-text" in relay.asked["Accept"]
    assert relay.asked["X-Prometheus-Scrape-Timeout-Seconds"] is not None
    assert relay.answered["Content-Encoding"] == "gzip"
    assert relay.answered["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.usefixtures("scene")
def test_who_is_throttled_and_by_which_rule(prometheus: Prometheus) -> None:
    """
    The README's query gives the throttled clients, their throttle times, and the rule of each.

    Who only waits for a mutation quota, in the broker's group Request, is not blamed on a request rule. The same join
    gives the limit as the value, with the rule in the labels; utilization ranks entities of one quota type.
    """
    expected = {
        ("produce", TEAM, HOSTILE): ("default_user_client", "<default>", HOSTILE),
        ("fetch", "carol", ""): ("user", "carol", ""),
        ("request", "", "scene-spam"): ("client", "", "scene-spam"),
    }
    expected_limits = {
        ("alice", "scene-app"): (40_000, ("user_client", "alice", "scene-app")),
        ("bob", ""): (60_000, ("user", "bob", "")),
    }

    def found() -> None:
        throttled = {
            (labels["quota_type"], labels["user"], labels["client_id"]): _rule(labels)
            for labels, _ in prometheus.query(readme_query())
        }
        assert throttled.items() >= expected.items()
        assert ("produce", "ANONYMOUS", "scene-quiet") not in throttled
        assert prometheus.query(FORWARDED)
        assert ("request", "", "scene-admin") not in throttled
        limits = {
            (labels["user"], labels["client_id"]): (value, _rule(labels))
            for labels, value in prometheus.query(LIMIT_OF_THROTTLED)
        }
        assert limits.items() >= expected_limits.items()
        users = {labels["user"] for labels, _ in prometheus.query(CLOSE_TO_LIMIT)}
        assert len(users) > 1
        assert users <= {"alice", "bob", TEAM}

    eventually(found)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_promtool_has_no_complaint(scene: Exporter, release: Release) -> None:
    """`promtool check metrics` finds nothing to say about the page."""
    page = scene.get("/metrics").body
    command = [release.program("promtool"), "check", "metrics"]
    checked = subprocess.run(command, input=page, capture_output=True, check=False)
    assert (checked.stdout, checked.stderr, checked.returncode) == (b"", b"", 0)


def test_formats_say_the_same(scene: Exporter) -> None:
    """
    OpenMetrics and the text format have the same families and series.

    The page is compressed for those who accept it, and only for them.
    """
    text = scene.get("/metrics", {"Accept-Encoding": "identity"})
    assert text.headers["Content-Encoding"] is None
    openmetrics = scene.get("/metrics", {"Accept": OPENMETRICS})
    assert openmetrics.headers["Content-Type"].startswith(OPENMETRICS.split(";")[0])
    assert openmetrics.text.endswith("# EOF\n")
    plain, decompressed = (
        {(sample.name, tuple(sorted(sample.labels.items()))) for sample in page.samples}
        for page in (Page.of(text.text), Page.of(openmetrics.text, openmetrics=True))
    )
    assert plain == decompressed
    compressed = scene.get("/metrics", {"Accept-Encoding": "gzip"})
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert b"kafka_quota_" in gzip.decompress(compressed.body)


def _rule(labels: Mapping[str, str]) -> tuple[str, str, str]:
    return labels["level"], labels["rule_user"], labels["rule_client_id"]


CLUSTERS = ("east", "west")


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_rules_and_alerts_keep_clusters_apart(tmp_path: Path, release: Release) -> None:
    """Each cluster has the series, recorded series and alerts that it would have alone. East alone is throttled."""
    captures = ("split/throttled.1.jolokia2.json", "combined/noquota.jolokia2.json")
    hurried_rules(tmp_path / "rules")
    with ExitStack() as stack:
        targets = []
        for cluster, capture in zip(CLUSTERS, captures, strict=True):
            agent = Agent(jolokia_bytes(capture))
            stack.callback(agent.close)
            source = {"name": "broker", "dialect": "jolokia", "url": agent.url}
            settings = {"cluster": cluster, "sources": [source], "log": {"format": "json"}}
            exporter = stack.enter_context(serving(tmp_path / cluster, settings))
            targets.append(exporter.url.removeprefix("http://"))
        prometheus = Prometheus(
            tmp_path / "prometheus",
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [f"{tmp_path}/rules/*.yaml"],
                "scrape_configs": [{"job_name": "quotascope", "static_configs": [{"targets": targets}]}],
            },
            release=release,
        )
        stack.callback(prometheus.child.end)

        def by_cluster(promql: str) -> dict[str, float]:
            return {labels.get("cluster", ""): value for labels, value in prometheus.query(promql)}

        def apart() -> None:
            assert by_cluster("count by (cluster) (quotascope_source_up)") == {"east": 1, "west": 1}
            throttled = "count by (cluster) (kafka_quota_throttle_time_seconds > 0)"
            assert by_cluster(throttled).keys() == {"east"}
            recorded = by_cluster('count by (cluster) ({__name__=~".+:.+"})')
            assert recorded.keys() == {*CLUSTERS}
            alerts = by_cluster('count by (cluster) (ALERTS{alertname="KafkaQuotaProduceThrottled"})')
            assert alerts.keys() == {"east"}

        eventually(apart)


VOLATILE = ("quotascope_snapshot_age", "quotascope_limits_age", "quotascope_source_age", "quotascope_otlp")
"""Ages go on, and a push counts itself only afterwards."""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with collecting(tmp_path / "collector") as collector:
        yield collector


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.usefixtures("scene")
def test_a_push_holds_what_a_scrape_shows(kafka: Cluster, collector: Collector, tmp_path: Path, protocol: str) -> None:
    """The Collector has, of the same snapshot of a broker under load, every series of /metrics."""
    endpoint = collector.grpc if protocol == "grpc" else collector.http
    settings = {
        **settings_for(kafka.brokers, kafka.admin),
        "collection": {"max_age_seconds": 3600},  # both look at one snapshot
        "cluster": "prod",
        "otlp": {"endpoint": endpoint, "protocol": protocol},
    }
    with serving(tmp_path / "serve", settings) as exporter:
        pushed = eventually(lambda: series(collector))
        page = exporter.page()
    scraped = {(s.name, tuple(sorted((k, v) for k, v in s.labels.items() if v))): s.value for s in page.samples}
    assert stable(pushed) == stable(scraped)
    assert len(stable(pushed)) > 100


@pytest.mark.usefixtures("scene")
def test_prometheus_takes_a_push(kafka: Cluster, tmp_path: Path) -> None:
    """
    The OTLP receiver of Prometheus 3 has every series of /metrics, by the same names and labels.

    Both are of one snapshot.
    """
    flag = "--web.enable-otlp-receiver"
    config = {"otlp": {"promote_resource_attributes": ["cluster"]}}
    prometheus = Prometheus(tmp_path / "prometheus", config, flag, release=NEWEST)
    settings = {
        **settings_for(kafka.brokers, kafka.admin),
        "collection": {"max_age_seconds": 3600},  # both look at one snapshot
        "cluster": "prod",
        "otlp": {
            "endpoint": f"http://{prometheus.address}/api/v1/otlp/v1/metrics",
            "resource_attributes": {"cluster": "prod"},
        },
    }
    try:
        eventually(lambda: prometheus.get("targets"))
        with serving(tmp_path / "serve", settings) as exporter:
            pushed = eventually(lambda: _pushed(prometheus))
            page = exporter.page()
    finally:
        prometheus.child.end()
    scraped = {(s.name, tuple(sorted((k, v) for k, v in s.labels.items() if v))): s.value for s in page.samples}
    assert stable(pushed) == stable(scraped)
    assert len(stable(pushed)) > 100


def _pushed(prometheus: Prometheus) -> dict[Key, float]:
    """Return the series of a push, without the labels that name the exporter; AssertionError before there is any."""
    answer = prometheus.query('{__name__=~"kafka_.+|quotascope_.+|process_.+"}')
    assert answer
    return {
        (labels["__name__"], tuple(sorted((k, v) for k, v in labels.items() if k not in _OF_RESOURCE))): value
        for labels, value in answer
    }


_OF_RESOURCE = ("__name__", "job", "instance")


def stable(series: dict[Key, float]) -> dict[Key, float]:
    return {key: value for key, value in series.items() if not key[0].startswith(VOLATILE)}
