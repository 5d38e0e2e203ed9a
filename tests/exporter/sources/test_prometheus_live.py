"""Nodes as a Prometheus server has them: recorded answers of real ones, also changed on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import isnan
from typing import Any

import pytest
from tests.exporter.sources.prometheus_recording import PAGES
from tests.exporter.sources.recorded_prometheus import (
    Answers,
    answering,
    recorded,
    series_of,
    without,
)

from quotascope.exporter.config import PrometheusConfig
from quotascope.exporter.discovery.build import server_of
from quotascope.exporter.errors import (
    AnswerTooLong,
    SourceDenied,
    SourceError,
    SourceUnreachable,
    SourceUnreadable,
)
from quotascope.exporter.mapping import BeanColumn, BeanTable
from quotascope.exporter.sources.prometheus_api import Series
from quotascope.exporter.sources.prometheus_live import NAMES_SECONDS, LivePrometheus, PrometheusNodeSource
from quotascope.exporter.sources.prometheus_nodes import (
    MOST_NAMES,
    Grouping,
    NodeSeries,
    comments_of,
    page_of_node,
    refuse_clusters,
    wanted_names,
)
from quotascope.exporter.sources.prometheus_text import TextReader

BROKERS = {"broker-1:9404": "1", "broker-2:9404": "2", "broker-3:9404": "3"}
REPLICA = {"prometheus_replica": "b"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def live_of(config: PrometheusConfig) -> AsyncIterator[tuple[LivePrometheus, Clock]]:
    """Yield the server with a clock that the test moves."""
    live, _ = server_of(config)
    clock = Clock()
    live.clock = clock
    try:
        yield live, clock
    finally:
        await live.close()


def source(live: LivePrometheus, instance: str) -> PrometheusNodeSource:
    return PrometheusNodeSource(f"prometheus/{instance}", live, instance, BROKERS.get(instance))


async def read(change: Callable[[Answers], object] = lambda _: None, instance: str = "broker-1:9404") -> BeanTable:
    """Return one node of the recording."""
    async with answering(change=change) as (_, config), live_of(config) as (live, _):
        return await source(live, instance).read()


def numbers(table: Any) -> dict[BeanColumn, float]:
    return dict(zip(table.layout.columns, table.values, strict=True))


def set_times(answers: Answers, instance: str, times: list[float], **labels: str) -> None:
    """Set how many seconds before the query an instance was scraped, by the servers with these labels."""
    evaluated_at = answers["vector"]["result"][0]["value"][0]
    for series in series_of(answers, "beats", instance):
        if series["metric"].get("prometheus_replica") == labels.get("prometheus_replica"):
            series["values"] = [[evaluated_at - seconds, "1"] for seconds in sorted(times, reverse=True)]


@pytest.mark.parametrize("release", ["oldest", "newest"])
@pytest.mark.parametrize("instance", BROKERS)
async def test_a_node_has_the_numbers_of_its_agent(instance: str, release: str) -> None:
    """The columns, numbers, dialect and coverage are those of the agent's own page."""
    async with answering(recorded(release=release)) as (_, config), live_of(config) as (live, _):
        node = source(live, instance)
        table = await node.read()
    direct = TextReader()
    page = direct.read(PAGES[instance])
    ours, theirs = numbers(table), numbers(page)
    assert ours.keys() == theirs.keys()
    assert [column for column in ours if ours[column] != theirs[column] and not isnan(theirs[column])] == []
    assert (node.dialect, table.coverage, table.hint) == (direct.dialect, page.coverage, page.hint)
    assert (table.node_id, table.stale, table.remark) == (BROKERS[instance], False, None)
    assert 0 <= table.age_seconds <= 2


async def test_one_answer_serves_all_nodes() -> None:
    """Sources that read at the same time share one query, and each next read asks again, but not for the names."""
    async with answering() as (prometheus, config), live_of(config) as (live, clock):
        sources = [source(live, instance) for instance in BROKERS]
        await asyncio.gather(*(node.read() for node in sources))
        assert prometheus.asked == ["now", "names", "metadata", "vector", "beats"]
        await asyncio.gather(*(node.read() for node in sources))
        assert prometheus.asked[5:] == ["vector", "beats"]
        clock.now += NAMES_SECONDS
        await sources[0].read()
        assert prometheus.asked[7:] == ["now", "names", "vector", "beats"]
    assert all('job="kafka"' in query for query in prometheus.queries if "{" in query)


async def test_a_source_that_is_canceled_leaves_the_others_their_answer() -> None:
    """A canceled source does not cancel the query that all sources share."""
    async with answering() as (_, config), live_of(config) as (live, _):
        first, second = (source(live, instance) for instance in ("broker-1:9404", "broker-2:9404"))
        reads = [asyncio.create_task(node.read()) for node in (first, second)]
        await asyncio.sleep(0)
        reads[0].cancel()
        assert (await reads[1]).node_id == "2"


async def test_replicas_are_one() -> None:
    """Of two servers that scrape an agent, only the one with the latest scrape is read."""

    def change(answers: Answers) -> None:
        for series in series_of(answers, "vector", "broker-1:9404"):
            if series["metric"].get("prometheus_replica") == "b" and series["metric"]["__name__"].endswith("byte_rate"):
                series["value"][1] = "123"

    def b_is_newer(answers: Answers) -> None:
        change(answers)
        set_times(answers, "broker-1:9404", [9, 19])
        set_times(answers, "broker-1:9404", [3, 13], prometheus_replica="b")

    def a_is_newer(answers: Answers) -> None:
        change(answers)
        set_times(answers, "broker-1:9404", [2, 12])
        set_times(answers, "broker-1:9404", [3, 13], prometheus_replica="b")

    async def rates(change: Callable[[Answers], None]) -> tuple[set[float], float]:
        table = await read(change)
        values = {value for column, value in numbers(table).items() if column.attribute == "byte-rate"}
        return values, table.age_seconds

    values, age_seconds = await rates(b_is_newer)
    assert values == {123.0}
    assert age_seconds == pytest.approx(3)
    values, age_seconds = await rates(a_is_newer)
    assert 123.0 not in values
    assert age_seconds == pytest.approx(2)


async def test_exporters_of_ours_and_other_programs_are_no_nodes() -> None:
    """An exporter has the names of our rules, and other programs have an agent as well; neither is a node."""

    def change(answers: Answers) -> None:
        foreign = {"__name__": "jmx_scrape_error", "instance": "cassandra:7070", "job": "kafka"}
        answers["vector"]["result"].append({"metric": foreign, "value": [1.0, "0"]})

    async with answering(change=change) as (_, config), live_of(config) as (live, _):
        assert (await live.reading()).nodes.keys() == BROKERS.keys()


@pytest.mark.parametrize(("age", "stale"), [(29.0, False), (31.0, True), (119.0, True)])
async def test_values_are_stale_after_two_intervals(age: float, stale: bool) -> None:  # noqa: FBT001 - a case
    """Values older than two scrape intervals are stale, and shown with their age."""
    table = await read(
        lambda answers: set_times(answers, "broker-2:9404", [age, age + 15, age + 30]), instance="broker-2:9404"
    )
    assert table.age_seconds == pytest.approx(age)
    assert table.stale is stale


async def test_old_values_are_not_shown() -> None:
    """A source is down after two minutes without values, or after two intervals if these are longer."""

    def at(*ages: float) -> Callable[[Answers], None]:
        return lambda answers: set_times(answers, "broker-2:9404", list(ages))

    with pytest.raises(SourceUnreachable, match=r"was 121 s ago, and it scrapes every 15 s: is it up"):
        await read(at(121, 136), "broker-2:9404")
    table = await read(at(170, 270), "broker-2:9404")
    assert table.age_seconds == pytest.approx(170)
    assert not table.stale
    with pytest.raises(SourceUnreachable, match="every 60 s"):  # of one scrape no interval is known
        await read(at(121), "broker-2:9404")


async def test_ages_go_on_while_an_answer_is_used() -> None:
    """The age of values includes the time since Prometheus was asked."""
    async with answering() as (_, config), live_of(config) as (live, clock):
        first = await source(live, "broker-2:9404").read()
        clock.now += 0.75
        later = await source(live, "broker-2:9404").read()
    assert later.age_seconds == pytest.approx(first.age_seconds + 0.75)


async def test_a_node_without_present_series_is_down() -> None:
    """A target that cannot be scraped has no series at once, which is no answer without clients."""
    with pytest.raises(SourceUnreachable, match=r"no present series of broker-2:9404: its last scrape failed"):
        await read(lambda answers: without(answers, "broker-2:9404"), "broker-2:9404")

    def no_times(answers: Answers) -> None:
        answers["beats"]["result"] = []

    with pytest.raises(SourceUnreadable, match="their age is unknown"):
        await read(no_times)

    def nothing(answers: Answers) -> None:
        answers["vector"]["result"] = []

    with pytest.raises(SourceUnreachable, match=r'no present series of a node with \{job="kafka"\}'):
        await read(nothing)

    def no_names(answers: Answers) -> None:
        answers["names"] = ["up", "node_cpu_seconds_total"]

    with pytest.raises(SourceUnreadable, match=r"no metric of Kafka's brokers with \{job=\"kafka\"\}"):
        await read(no_names)


async def test_clusters_are_told_apart_by_the_selector() -> None:
    """Nodes of two jobs are refused with both values and a selector; one that names the label chooses."""
    async with answering(recorded("all")) as (_, config), live_of(config) as (live, _):
        live.selector = ""
        reading = await live.reading()
        with pytest.raises(SourceUnreadable, match=r"'kafka', west-1:9404 'west'.*selector, such as \{job=") as refused:
            await live.refuse_clusters(reading)
        assert '{job=~"kafka|west"}' in str(refused.value)
        live.selector = 'job=~"kafka|west"'
        await live.refuse_clusters(reading)


def node(instance: str, **labels: str) -> NodeSeries:
    series = Series(labels={"__name__": "kafka_server_Produce_queue_size", **labels}, samples=[(1.0, "0")])
    return NodeSeries(instance=instance, series=[series])


@pytest.mark.parametrize("label", ["cluster", "kafka_cluster", "strimzi_io_cluster", "namespace", "env", "job"])
def test_labels_of_clusters(label: str) -> None:
    """Nodes that differ in a label of clusters, or of which some lack it, are refused as several clusters."""
    for labels in ({label: "east"}, {}):
        with pytest.raises(SourceUnreadable, match=f"{label}='west'|'west'"):
            refuse_clusters([node("a", **{label: "west"}), node("b", **labels)], "", "instance")
    refuse_clusters([node("a", **{label: "west"}), node("b", **{label: "east"})], f'{label}=~".+"', "instance")


@pytest.mark.parametrize("instance", ["q:9749", ""])
@pytest.mark.parametrize("labels", [{"env": "test"}, {}])
def test_clusters_of_one_instance_are_refused(instance: str, labels: dict[str, str]) -> None:
    """Targets of two environments with the same instance, or without one, are refused, as nodes and as one node."""
    name = instance or "a target without instance"
    nodes = [node(instance, env="prod"), node(instance, **labels)]
    with pytest.raises(SourceUnreadable, match=f"{name} has env='prod', {name} '{labels.get('env', '')}'"):
        refuse_clusters(nodes, "", "instance")
    together = NodeSeries(instance=instance, series=[one for part in nodes for one in part.series])
    with pytest.raises(SourceUnreadable, match=r"env=.*env=\"(prod|test)\"\}"):
        refuse_clusters([together], "", "instance")
    refuse_clusters(nodes, 'env=~".*"', "instance")


def test_nodes_of_one_cluster_may_differ() -> None:
    """Labels for a rack, zone, pod or host tell nodes apart, and not clusters."""
    labels = ("pod", "zone", "rack", "node", "strimzi_io_pool_name")
    refuse_clusters([node(name, **dict.fromkeys(labels, name)) for name in "ab"], "", "instance")


async def test_a_series_without_an_instance_is_refused() -> None:
    """A series without an instance is refused, and the label that would tell nodes apart is named."""

    def change(answers: Answers) -> None:
        for series in series_of(answers, "vector", "broker-3:9404"):
            del series["metric"]["instance"]

    with pytest.raises(SourceUnreadable, match="has no label instance, which tells nodes apart: set instance_label"):
        await read(change)


async def test_labels_of_the_agent_keep_their_meaning() -> None:
    """Where target and agent both have a label, the agent's value counts."""

    def change(answers: Answers) -> None:
        for series in series_of(answers, "vector", "broker-2:9404"):
            if "user" in series["metric"]:
                series["metric"]["exported_user"] = series["metric"]["user"]
            series["metric"]["user"] = "the owner of the machine"

    clients = {column for column in numbers(await read(instance="broker-2:9404")) if column.bean.get("user")}
    changed = {column for column in numbers(await read(change, "broker-2:9404")) if column.bean.get("user")}
    assert clients
    assert {column for column in changed if column.bean.get("user") != "the owner of the machine"} >= clients


def test_the_order_of_a_name_is_kept() -> None:
    """A client-id that is cut wrongly, as it looks like a part of a name, is joined as on the agent's page."""
    line = b'kafka_server_quota_byte_rate{resource="Produce",user="\\"a, client-id=b\\"",clientId="c"} 1\n'
    direct = TextReader().read(line)
    labels = {"resource": "Produce", "user": '"a, client-id=b"', "clientId": "c"}
    in_order = dict(sorted({"__name__": "kafka_server_quota_byte_rate", "instance": "x", **labels}.items()))
    series = NodeSeries(instance="x", series=[Series(labels=in_order, samples=[(0.0, "1")])])
    page = page_of_node(series, Grouping(), {})
    assert page == line
    assert numbers(TextReader().read(page)) == numbers(direct)


def test_hostile_values_are_one_line_each() -> None:
    """Quotes, backslashes and line ends are escaped."""
    hostile = '\\"\n# TYPE x gauge\ty\ud800'
    labels = {"__name__": "kafka_server_Produce_byte_rate", "user": hostile}
    page = page_of_node(NodeSeries(instance="", series=[Series(labels=labels, samples=[(0, "NaN")])]), Grouping(), {})
    assert page.count(b"\n") == 1
    comments = comments_of({"x": [{"type": "gauge", "help": "a\nb"}], "y": [{"type": "a\n"}], "z": 3}, "xyz")
    assert comments == {"x": ["# HELP x a\\nb", "# TYPE x gauge"]}
    assert comments_of({"x": [{"type": "gauge"}, {"type": "counter"}]}, "x") == {}


def test_names_of_interest() -> None:
    """Names that the reader understands are asked for, with their prefix, and none of other programs."""
    ours = [
        "kafka_server_Produce_byte_rate",
        "kafka_server_quota_throttle_time",
        "kafka_quota_node_start_time_seconds",
        "kafka_controller_kafkacontroller_activecontrollercount",
        "kafka_server_app_info_starttimems",
        "jmx_scrape_error",
        "quotascope_build_info",
        "acme_kafka_server_fetch_byte_rate",
        "acme_kafka_controller_kafkacontroller_activecontrollercount",
    ]
    others = ["up", "node_cpu_seconds_total", "kafka_log_log_size", "instance:kafka_server_produce_byte_rate:sum"]
    assert wanted_names([*ours, *others]) == ours
    mangled = [f"kafka_server_produce_user_u{number}_byte_rate" for number in range(100)]
    assert 0 < len(wanted_names(mangled)) < 10
    with pytest.raises(SourceUnreadable, match="set selector to the job of the brokers' agents"):
        wanted_names(f"kafka_server_produce_x{number}_byte_rate" for number in range(MOST_NAMES + 1))


async def test_logins_are_sent_and_never_shown() -> None:
    """Password, token and tenant reach the server, and no message holds them."""
    async with answering() as (prometheus, config):
        login = config.model_validate(
            {
                "url": config.url,
                "basic_auth": {"username": "me", "password": "geheim"},
                "headers": {"X-Scope-OrgID": "tenant-geheim"},
            }
        )
        async with live_of(login) as (live, _):
            await live.reading()
            assert prometheus.headers["Authorization"] == "Basic bWU6Z2VoZWlt"
            assert prometheus.headers["X-Scope-OrgID"] == "tenant-geheim"
            assert prometheus.headers["Content-Type"] == "application/x-www-form-urlencoded"
            prometheus.refusal = 401, b"geheim"
            with pytest.raises(SourceDenied, match="Prometheus refuses these credentials") as denied:
                await live.reading(newer_than=live.clock())
            assert "geheim" not in f"{denied.value} {login!r} {live!r}"
        token = config.model_validate({"url": config.url, "headers": {"Authorization": "Bearer abc"}})
        prometheus.refusal = None
        async with live_of(token) as (live, _):
            await live.reading()
            assert prometheus.headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (
            (422, b'{"status":"error","errorType":"execution","error":"too many samples"}'),
            "HTTP 422: Prometheus says: too",
        ),
        ((404, b"404 page not found"), "HTTP 404: nothing at this path; its API should be below this address"),
        ((200, b"<html>"), "the answer is none of Prometheus's API"),
        ((200, b'{"status":"error","error":"broken"}'), "broken"),
        ((200, b'{"status":"success","data":{"resultType":"vector","result":[{"x":1}]}}'), "none of Prometheus's API"),
        ((200, b'{"status":"success","data":{"resultType":"scalar","result":"x"}}'), "none of Prometheus's API"),
        ((200, b'{"status":"success"}'), "none of Prometheus's API"),
    ],
)
async def test_what_is_no_answer_is_named(refusal: tuple[int, bytes], message: str) -> None:
    """Errors are shown in Prometheus's own words, and other servers are distinguished at each step."""
    for names_known in (False, True):
        async with answering() as (prometheus, config), live_of(config) as (live, _):
            if names_known:
                await live.reading()
            prometheus.refusal = refusal
            with pytest.raises(SourceError, match=message):
                await live.reading(newer_than=live.clock())


async def test_warnings_are_remarks() -> None:
    """A warning of a server about its parts is shown beside the values."""
    async with answering() as (prometheus, config), live_of(config) as (live, _):
        prometheus.warnings = ["store 7 does not answer"]
        table = await source(live, "broker-1:9404").read()
    assert table.remark == "store 7 does not answer"


async def test_answers_are_bounded() -> None:
    """An answer that is longer than allowed is not read to its end."""
    async with answering() as (_, config), live_of(config.model_copy(update={"max_answer_bytes": 4096})) as (live, _):
        with pytest.raises(AnswerTooLong, match="max_answer_bytes"):
            await live.reading()


async def test_servers_without_metadata_are_read() -> None:
    """Servers without metadata are read, as the types of metrics are not needed."""
    async with answering() as (prometheus, config), live_of(config) as (live, _):
        prometheus.answers["metadata"] = []
        table = await source(live, "broker-2:9404").read()
    assert numbers(table).keys() == numbers(TextReader().read(PAGES["broker-2:9404"])).keys()


async def test_victoria_metrics_answers_with_vectors_about_the_present() -> None:
    """VictoriaMetrics is asked for the time as a vector, and with `nocache`, without which values are 30 s old."""

    def as_vector(answers: Answers) -> None:
        at, text = answers["now"]["result"]
        answers["now"] = {"resultType": "vector", "result": [{"metric": {}, "value": [at, text]}]}

    direct = await read()
    assert numbers(await read(as_vector)) == pytest.approx(numbers(direct), nan_ok=True)
    async with answering(change=as_vector) as (prometheus, config), live_of(config) as (live, _):
        await live.reading()
        asked = zip(prometheus.asked, prometheus.nocache, strict=True)
        assert {nocache for kind, nocache in asked if kind in {"vector", "beats"}} == {"1"}


async def test_queries_end_with_the_read() -> None:
    """A query has the timeout of its read in whole seconds, so that the server stops with it."""
    async with (
        answering() as (prometheus, config),
        live_of(config.model_copy(update={"timeout_seconds": 7.2})) as (live, _),
    ):
        await live.reading()
    assert prometheus.timeout == "7200ms"
