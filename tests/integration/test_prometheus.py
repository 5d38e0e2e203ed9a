"""What a real Prometheus makes of it, and what an operator asks it."""

import gzip
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.exporter.web.serving import HASH, PASSWORD, tls_section, web_file
from tests.integration.eventually import eventually
from tests.integration.exporter import OPENMETRICS, Exporter, settings_for
from tests.integration.page import Page
from tests.integration.prometheus import Prometheus, scraping
from tests.integration.relay import Relay
from tests.integration.scene import HOSTILE, TEAM
from tests.servers import served

pytestmark = pytest.mark.real

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
    """The query that the README gives: who is throttled, and by which rule."""
    blocks = README.read_text().split("```")[1::2]
    (query,) = (block for block in blocks if "kafka_quota_rule_info" in block)
    return query


@pytest.fixture(scope="module")
def relay(exporter: Exporter) -> Iterator[Relay]:
    """The exporter's page in the plain text format."""
    with served(Relay(exporter.url)) as relay:
        yield relay


@pytest.fixture(scope="module")
def guarded(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """An exporter of the same broker that wants TLS, a client certificate and a password."""
    folder = tmp_path_factory.mktemp("guarded")
    known = {"client_ca_file": str(kafka.certificates.ca), "client_auth_type": "RequireAndVerifyClientCert"}
    file = web_file(folder, **tls_section(kafka.certificates, **known), basic_auth_users={"prometheus": HASH})
    server = {"address": "127.0.0.1", "port": 0, "web_config_file": str(file)}
    settings = {**settings_for(kafka.brokers, None), "server": server}
    exporter = Exporter(folder / "serve", settings)
    try:
        yield exporter
    finally:
        exporter.child.end()


@pytest.fixture(scope="module")
def prometheus(
    exporter: Exporter, relay: Relay, guarded: Exporter, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the exporter itself, once more through the relay, and one that is protected."""
    targets = {
        "quotascope": exporter.url.removeprefix("http://"),
        "text": relay.address,
        "guarded": guarded.url.removeprefix("https://"),
    }
    made = kafka.certificates
    files = {"ca_file": made.ca, "cert_file": made.client, "key_file": made.client_key}
    login = {
        "scheme": "https",
        "tls_config": {name: str(file) for name, file in files.items()},
        "basic_auth": {"username": "prometheus", "password": PASSWORD},
    }
    folder = tmp_path_factory.mktemp("prometheus") / "prometheus"
    with scraping(folder, targets, apart={"text", "guarded"}, access={"guarded": login}) as prometheus:
        yield prometheus


def test_both_formats_are_scraped(prometheus: Prometheus, relay: Relay) -> None:
    """Prometheus takes OpenMetrics, which it prefers, and the text format 0.0.4, both compressed; with TLS and password as well."""

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
    The README's query gives the throttled clients, for how long, and the rule that does it.

    Who only waits for a mutation quota, in the broker's group Request, is not blamed on a request rule. The same join gives
    the limit as the value, with the rule in the labels; utilization ranks entities of one quota type.
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


def test_promtool_has_no_complaint(scene: Exporter) -> None:
    """`promtool check metrics` finds nothing to say about the page."""
    page = scene.get("/metrics").body
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (checked.stdout, checked.stderr, checked.returncode) == (b"", b"", 0)


def test_formats_say_the_same(scene: Exporter) -> None:
    """OpenMetrics and the text format have the same families and series; the page is compressed for those who accept it, and only for them."""
    text = scene.get("/metrics", {"Accept-Encoding": "identity"})
    assert text.headers["Content-Encoding"] is None
    openmetrics = scene.get("/metrics", {"Accept": OPENMETRICS})
    assert openmetrics.headers["Content-Type"].startswith(OPENMETRICS.split(";")[0])
    assert openmetrics.text.endswith("# EOF\n")
    plain, same = (
        {(sample.name, tuple(sorted(sample.labels.items()))) for sample in page.samples}
        for page in (Page.of(text.text), Page.of(openmetrics.text, openmetrics=True))
    )
    assert plain == same
    compressed = scene.get("/metrics", {"Accept-Encoding": "gzip"})
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert b"kafka_quota_" in gzip.decompress(compressed.body)


def _rule(labels: Mapping[str, str]) -> tuple[str, str, str]:
    return labels["level"], labels["rule_user"], labels["rule_client_id"]
