"""Agents of a real broker that show less than there is, beside an Admin API that knows better."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.cluster import Cluster
from tests.commands import run
from tests.integration import web
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.servers import Handler, served

pytestmark = pytest.mark.real

QUEUE: Final = re.compile(r'^kafka_quota_delay_queue_size\{quota_type="(\w+)"[^}]*\} (\S+)$', re.MULTILINE)
FOREIGN: Final = 'kafka_quota_callback_produce_bytes_per_second{tags="tenant=a"} 5.0\n'


def only_queues(page: str) -> str:
    """Return the page as the default rules of a chart make it: delay queues, and nothing of a client."""
    sizes = [(kind.replace("_", ""), size) for kind, size in QUEUE.findall(page)]
    assert len(sizes) == 4
    lines = [
        f"# TYPE kafka_server_{kind}_queue_size untyped\nkafka_server_{kind}_queue_size {size}" for kind, size in sizes
    ]
    return "\n".join([*lines, ""])


def with_foreign_labels(page: str) -> str:
    """Return the page with a series under a label that Kafka's own quotas do not have."""
    return f"{page.removesuffix('# EOF' + chr(10))}{FOREIGN}"


@contextmanager
def exporter_of(kafka: Cluster, folder: Path, changed: Callable[[str], str]) -> Iterator[Exporter]:
    """Yield an exporter that reads the broker's page of our own rules after a change."""
    url = kafka.brokers[0].agents.own_rules

    class Changed(Handler):
        def do_GET(self) -> None:  # noqa: N802 - the library's name
            page = web.ask(url, headers={"Accept": "text/plain;version=0.0.4"}).text
            self.answer(200, changed(page).encode(), Content_Type="text/plain; version=0.0.4; charset=utf-8")

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Changed)) as server:
        settings = settings_for(kafka.brokers, kafka.admin)
        settings["sources"] = [
            {"name": "narrow", "node_id": 1, "url": f"http://127.0.0.1:{server.server_port}/metrics"}
        ]
        with serving(folder / "serve", settings) as exporter:
            yield exporter


def test_delay_queues_without_clients_are_throttled_clients(kafka: Cluster, scene: Exporter, tmp_path: Path) -> None:
    """No command calls it calm while real clients are throttled, and the rule that the agent lacks is named."""
    assert scene.page().get("kafka_quota_throttle_time_seconds", quota_type="produce", user="bob") is not None
    with exporter_of(kafka, tmp_path, only_queues) as exporter:

        def said() -> None:
            page = exporter.page()
            assert page.value("kafka_quota_delay_queue_size", quota_type="produce") > 0
            assert page.value("quotascope_source_shows_clients", source="narrow") == 0
            process = run("status", "--exporter", exporter.url)
            assert process.returncode == 1
            text = " ".join(process.stdout.split())
            assert "Clients are throttled on node 1 now: produce" in text
            assert "kafka.server:type=Produce,user=*,client-id=*" in text
            assert "clients of node 1 not shown" in text
            assert "No traffic" not in text

        eventually(said, seconds=60)
        doctor = run("doctor", "--config", exporter.config)
        assert doctor.returncode != 0
        assert "Everything works" not in doctor.stdout
        assert "misspelled" not in doctor.stdout
        rules = run("quotas", "list", "--exporter", exporter.url)
        assert "not visible here" in rules.stdout
        assert "apply to no client now" not in rules.stdout


def test_a_label_is_no_callback_where_describe_configs_says_that_there_is_none(
    kafka: Cluster, scene: Exporter, tmp_path: Path
) -> None:
    """Limits stay known, and the series is one that cannot be read."""
    assert scene.page().get("kafka_quota_throttle_time_seconds", quota_type="produce", user="bob") is not None
    with exporter_of(kafka, tmp_path, with_foreign_labels) as exporter:

        def said() -> None:
            page = exporter.page()
            assert page.value("quotascope_callback_detected", broker="1") == 0
            assert page.value("quotascope_source_unplaced_series", source="narrow") == 1
            assert page.value("kafka_quota_produce_limit_bytes_per_second", user="bob") == 60_000
            assert page.get("kafka_quota_utilization_ratio", quota_type="produce", user="bob") is not None
            assert "kafka_quota_callback_produce_bytes_per_second" not in page.names()

        eventually(said, seconds=60)
        process = run("status", "--exporter", exporter.url)
        assert process.returncode == 1
        assert "tenant" in process.stdout
        assert "callback" not in process.stdout
