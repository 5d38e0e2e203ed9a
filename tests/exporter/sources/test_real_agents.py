"""The sources against the agents of a real broker."""

from dataclasses import replace

import pytest
from tests.cluster.agents import JOLOKIA1_PASSWORD, JOLOKIA1_USER
from tests.cluster.cluster import Cluster
from tests.exporter.recorded import numbers

from quotascope.clients.security import Tls
from quotascope.exporter.beans import BeanTable
from quotascope.exporter.errors import (
    SourceDenied,
    SourceError,
    SourceUnreachable,
    SourceUnreadable,
)
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource
from quotascope.exporter.sources.source import Source

pytestmark = pytest.mark.real


@pytest.fixture
def secured(kafka: Cluster) -> HttpTarget:
    """Jolokia 1 behind TLS and a password."""
    return HttpTarget(
        url=kafka.nodes[1].agents.jolokia1,
        username=JOLOKIA1_USER,
        password=JOLOKIA1_PASSWORD,
        tls=Tls(ca_file=kafka.certificates.ca).context(),
    )


async def table(source: Source) -> BeanTable:
    """What a source reads, twice: the second time nothing is parsed again."""
    try:
        first = await source.read()
        second = await source.read()
    finally:
        await source.close()
    shared = set(first.layout.columns) & set(second.layout.columns)
    again = {column: column for column in second.layout.columns}
    assert all(
        again[column] is column for column in first.layout.columns if column in shared
    )
    return second


async def failure(source: Source) -> SourceError:
    """The error of a source; it shows no secret."""
    try:
        with pytest.raises(SourceError) as caught:
            await source.read()
    finally:
        await source.close()
    assert JOLOKIA1_PASSWORD not in str(caught.value)
    return caught.value


async def test_all_agents_of_a_node_tell_the_same_node_and_start(
    kafka: Cluster, secured: HttpTarget
) -> None:
    """Three dialects, one table."""
    agents = kafka.nodes[1].agents
    new = await table(JolokiaSource("new", HttpTarget(url=agents.jolokia)))
    old = await table(JolokiaSource("old", secured))
    text = await table(
        PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter))
    )
    assert new.node_id == old.node_id == text.node_id == "1"
    started = {
        value
        for each in (new, old, text)
        for (bean, _), value in numbers(each).items()
        if bean.get("type") == "app-info"
    }
    assert len(started) == 1


async def test_a_url_without_its_last_slash_works(kafka: Cluster) -> None:
    """People write http://broker:8778/jolokia."""
    url = kafka.nodes[1].agents.jolokia.rstrip("/")
    assert (await table(JolokiaSource("a", HttpTarget(url=url)))).node_id == "1"


async def test_a_controller_tells_its_event_queue(kafka: Cluster) -> None:
    """Kafka's histogram of how long its events waited, which a mutation quota is chosen by."""
    source = JolokiaSource("a", HttpTarget(url=kafka.nodes[1].agents.jolokia))
    told = {
        attribute: value
        for (bean, attribute), value in numbers(await table(source)).items()
        if bean.get("name") == "EventQueueTimeMs"
    }
    assert told.keys() == {"Mean", "Count"}
    assert told["Count"] > 0


async def test_a_node_says_whether_it_leads(kafka: Cluster) -> None:
    """The combined node is the only controller, and says so in every dialect."""
    agents = kafka.nodes[1].agents
    sources = (
        JolokiaSource("json", HttpTarget(url=agents.jolokia)),
        PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter)),
    )
    for source in sources:
        leads = [
            value
            for (bean, _), value in numbers(await table(source)).items()
            if bean.get("name") == "ActiveControllerCount"
        ]
        assert leads == [1.0]


@pytest.mark.parametrize("password", ["wrong", ""])
async def test_a_wrong_password_is_denied(secured: HttpTarget, password: str) -> None:
    """Jolokia answers 401."""
    error = await failure(JolokiaSource("a", replace(secured, password=password)))
    assert isinstance(error, SourceDenied)
    assert "basic_auth" in str(error)


async def test_an_unknown_authority_is_denied(secured: HttpTarget) -> None:
    """The message says which setting makes the certificate trusted."""
    error = await failure(JolokiaSource("a", replace(secured, tls=None)))
    assert isinstance(error, SourceDenied)
    assert "tls.ca_file" in str(error)


async def test_verification_can_be_switched_off(secured: HttpTarget) -> None:
    """For a certificate that nobody can check."""
    source = JolokiaSource("a", replace(secured, tls=Tls(verify=False).context()))
    assert (await table(source)).node_id == "1"


async def test_https_to_a_plain_port_fails_with_advice(kafka: Cluster) -> None:
    """Java waits for a request for ever; the message asks whether the port speaks https."""
    url = kafka.nodes[1].agents.jolokia.replace("http://", "https://")
    target = HttpTarget(url=url, timeout_seconds=0.3)
    error = await failure(JolokiaSource("a", target))
    assert isinstance(error, SourceUnreachable)
    assert "does not speak https" in str(error)


async def test_plain_http_to_a_tls_port_fails_with_advice(kafka: Cluster) -> None:
    """Java hangs up without a word."""
    url = kafka.nodes[1].agents.jolokia1.replace("https://", "http://")
    error = await failure(JolokiaSource("a", HttpTarget(url=url)))
    assert "https" in str(error)


async def test_the_wrong_path_is_unreadable(kafka: Cluster) -> None:
    """Jolokia is not at the root."""
    url = kafka.nodes[1].agents.jolokia.replace("/jolokia", "/nothing")
    error = await failure(JolokiaSource("a", HttpTarget(url=url)))
    assert isinstance(error, SourceUnreadable)
    assert "/jolokia" in str(error)


async def test_agents_are_not_mistaken_for_each_other(kafka: Cluster) -> None:
    """A url under the wrong dialect is told as such."""
    agents = kafka.nodes[1].agents
    text = await failure(JolokiaSource("a", HttpTarget(url=agents.jmx_exporter)))
    json = await failure(PrometheusTextSource("a", HttpTarget(url=agents.jolokia)))
    assert isinstance(text, SourceUnreadable)
    assert isinstance(json, SourceUnreadable)


async def test_a_kafka_listener_is_not_an_agent(kafka: Cluster) -> None:
    """The broker's own port does not speak HTTP."""
    url = f"http://{kafka.admin}/jolokia"
    target = HttpTarget(url=url, timeout_seconds=0.5)
    assert isinstance(
        await failure(JolokiaSource("a", target)),
        SourceUnreachable | SourceUnreadable,
    )


async def test_a_source_recovers(kafka: Cluster) -> None:
    """A failed read leaves nothing behind: the next one works."""
    target = HttpTarget(url=kafka.nodes[1].agents.jolokia, max_bytes=100)
    small = JolokiaSource("a", target)
    error = await failure(small)
    assert "longer than" in str(error)
    await small.close()
    assert (await table(JolokiaSource("a", replace(target, max_bytes=1 << 20)))).node_id
