"""Why there is nothing to show, and a broker that dies."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.ports import free_port
from tests.cluster.quotas import Quotas
from tests.commands import run
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that one of these tests kills, and that no client uses."""
    with running(Layout.COMBINED, tmp_path_factory.mktemp("own")) as cluster:
        yield cluster


def said_at_start(exporter: Exporter, text: str) -> None:
    """Assert that the log says so before it says that the exporter is ready."""

    def said() -> None:
        messages = [line["msg"] for line in exporter.log()]
        assert "ready" in messages
        assert any(text in message for message in messages[: messages.index("ready")])

    eventually(said)


def said_on_demand(exporter: Exporter, text: str, *, code: int) -> None:
    """Assert that the landing page and `status` say so, and that `status` ends with a code."""
    assert text in exporter.get("/").text
    shown = run("status", "--config", exporter.config)
    assert text in " ".join(shown.stdout.split())
    assert shown.returncode == code


def test_no_rule_is_configured_or_no_client_has_met_it(own_kafka: Cluster, tmp_path: Path) -> None:
    """Without any quota Kafka measures no one; with a rule that no one has met yet, that is said, and the rule is shown."""
    settings = settings_for(own_kafka.brokers, own_kafka.admin)
    with closing(Quotas(own_kafka.connection())) as quotas:
        for number, text in enumerate(("No client quota is configured", "No traffic yet")):
            with serving(tmp_path / f"serve-{number}", settings) as exporter:
                page = exporter.page()
                assert page.value("quotascope_entities", state="exported") == 0
                rules = list(page.series("kafka_quota_rule_produce_limit_bytes_per_second"))
                assert [(each.labels["rule_user"], each.value) for each in rules] == [("alice", 1024)] * number
                said_at_start(exporter, text)
                said_on_demand(exporter, text, code=0)
            quotas.set(({"user": "alice"}, {"producer_byte_rate": 1024.0}))
        quotas.clear()


def test_agent_is_unreachable(own_kafka: Cluster, tmp_path: Path) -> None:
    """An agent that does not answer is named with its reason; the rules are shown all the same."""
    settings = settings_for(own_kafka.brokers, own_kafka.admin)
    settings["sources"][0]["url"] = f"http://127.0.0.1:{free_port()}/jolokia"
    with serving(tmp_path / "serve", settings) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="node-1") == 0
        assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") >= 0
        (line,) = exporter.log("source is down")
        assert "Connection refused" in line["error"]
        said_on_demand(exporter, "Connection refused", code=1)


def test_kafka_is_unreachable(own_kafka: Cluster, tmp_path: Path) -> None:
    """An Admin API that does not answer is named with its reason; usage is shown all the same."""
    settings = settings_for(own_kafka.brokers, f"127.0.0.1:{free_port()}")
    with serving(tmp_path / "serve", settings) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="node-1") == 1
        assert not list(page.series("kafka_quota_rules"))
        (line,) = exporter.log("limits cannot be read")
        assert "connection refused" in line["error"]
        said_on_demand(exporter, "The Admin API cannot be reached", code=1)


def test_broker_dies_and_comes_back_while_it_is_scraped(own_kafka: Cluster, tmp_path: Path) -> None:
    """Every scrape is answered with 200; the source goes down and up again, with one log line for each."""
    node = own_kafka.brokers[0]
    settings = settings_for(own_kafka.brokers, own_kafka.admin, timeout_seconds=2)
    with serving(tmp_path / "serve", settings) as exporter, scraped(exporter) as ups:
        eventually(lambda: _last(ups, 1))
        node.kill()
        eventually(lambda: _last(ups, 0))
        eventually(lambda: _limits_fail(exporter))
        node.start()
        node.wait_until_ready()
        eventually(lambda: _last(ups, 1))
        eventually(lambda: _limits_are_back(exporter))
        states = [line for line in exporter.log() if line.get("source") == "node-1"]
        assert [line["msg"] for line in states] == ["source is up", "source is down", "source is up again"]
        assert len(exporter.log("limits cannot be read")) == 1
    assert exporter.child.end() == 0


@contextmanager
def scraped(exporter: Exporter) -> Iterator[list[float]]:
    """What one scrape after another sees of the source, without a pause; each must get a complete answer and HTTP 200."""
    stop, ups = threading.Event(), list[float]()

    def scrape() -> None:
        while not stop.wait(0.02):
            ups.append(exporter.page().value("quotascope_source_up", source="node-1"))

    with ThreadPoolExecutor(1) as pool:
        scraping = pool.submit(scrape)
        try:
            yield ups
        finally:
            stop.set()
        scraping.result()


def _last(ups: list[float], value: float) -> None:
    assert ups
    assert ups[-1] == value


def _limits_fail(exporter: Exporter) -> None:
    assert exporter.page().value("quotascope_limits_refresh_errors_total") > 0


def _limits_are_back(exporter: Exporter) -> None:
    assert len(exporter.log("limits can be read")) == 2
