"""Answers that are no metrics of a Kafka node are told what they are."""

from collections.abc import Callable

import pytest
from tests.exporter.recorded import CAPTURES

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources import dialects
from quotascope.exporter.sources.dialects import STRIMZI
from quotascope.exporter.sources.prometheus_text import TextReader

PAGE = "<html>\n<head><title>JMX Exporter</title></head>\n<body><a href='/metrics'>Metrics</a></body>\n</html>\n"
USUAL = "this is a web page, not metrics: the usual path of a Prometheus agent is /metrics"


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        "<!DOCTYPE html>" + PAGE,
        "\n \t" + PAGE,
        "\ufeff" + PAGE,
        PAGE.upper(),
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"><html xmlns="x"></html>',
        "<!-- moved --><html></html>",
        "<h1>Not found</h1>",
    ],
)
@pytest.mark.parametrize("forced", [None, STRIMZI])
def test_a_web_page_has_the_usual_path(text: str, forced: None) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        TextReader(forced).read(text.encode())
    assert str(caught.value) == USUAL


def test_a_login_is_named() -> None:
    """A login form that a proxy in front of an agent sends with status 200 is named as one."""
    form = '<html><body><form><input type="password" name="p"></form></body></html>'
    with pytest.raises(SourceUnreadable, match=r"not metrics.*it asks for a login"):
        TextReader().read(form.encode())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"status": 404}', "this is JSON.*Jolokia"),
        ("[]", "this is JSON"),
        ('redpanda_kafka_quotas_client_quota_throughput_bucket{le="1"} 0\n', "this is Redpanda, not Apache Kafka"),
        (
            ('redpanda_kafka_quotas_client_quota_throttle_time_sum{redpanda_quota_type="produce_quota"} 0\n'
            'redpanda_kafka_quotas_client_quota_throttle_time_sum{redpanda_quota_type="fetch_quota"} 0\n'),
            "this is Redpanda",
        ),
        ('vectorized_kafka_quotas_quota_manager_throttle_time{shard="0"} 3\n', "this is Redpanda"),
        ("# HELP vectorized_x y\nvectorized_application_uptime 5\n", "this is Redpanda"),
        ('kafka_brokers 3\nkafka_consumergroup_lag{topic="t"} 1\n', "this is kafka_exporter"),
        ('kminion_kafka_cluster_info{broker_count="3"} 1\n', "this is kminion"),
        ('node_cpu_seconds_total{cpu="0",mode="idle"} 1\n', "this is node_exporter.*11001"),
        ("kafka_connect_worker_metrics_task_count 1\n", "Kafka Connect worker"),
        ('prometheus_build_info{version="3"} 1\n', "Prometheus about itself"),
    ],
)  # fmt: skip
def test_a_page_of_another_program_is_told_whose_it_is(text: str, said: str) -> None:
    with pytest.raises(SourceUnreadable, match=said):
        TextReader().read(text.encode())


def test_an_agent_beside_another_program_on_one_page_is_read() -> None:
    """A proxy may join the pages of an agent and of another program."""
    text = (CAPTURES / "dialects/kafka_2_0_0.txt").read_bytes()
    both = text + b"node_uname_info{} 1\nkminion_up 1\nredpanda_x 1\n"
    assert TextReader().read(both).layout.columns == TextReader().read(text).layout.columns


def test_the_page_of_an_exporter_of_ours_is_no_agents() -> None:
    text = 'quotascope_build_info{version="1"} 1\nkafka_quota_throttle_time_seconds{user="a"} 1\n'
    with pytest.raises(SourceUnreadable, match="page of a quotascope exporter"):
        TextReader().read(text.encode())


def test_a_page_without_comments_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without comments is searched once to tell jmx_exporter from Strimzi's reporter."""
    searched: list[str] = []
    search: Callable[[str], bool] = dialects._is_from_jmx_exporter

    def counted(page: str) -> bool:
        searched.append(page)
        return search(page)

    monkeypatch.setattr(dialects, "_is_from_jmx_exporter", counted)
    reader = TextReader()
    for _ in range(2):
        reader.read(b'kafka_server_produce_byte_rate{client_id="app",user="alice"} 5.0\n')
    assert len(searched) == 2
