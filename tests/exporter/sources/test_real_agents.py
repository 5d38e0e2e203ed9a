"""The sources against the agents of a real broker."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cluster.agents import JOLOKIA1_PASSWORD, JOLOKIA1_USER
from tests.cluster.cluster import Cluster
from tests.exporter.recorded import numbers

from quotascope.clients.security import Tls
from quotascope.exporter.errors import SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.mapping import BeanTable
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
    assert all(again[column] is column for column in first.layout.columns if column in shared)
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


async def test_all_agents_of_a_node_report_the_same_node_and_start(kafka: Cluster, secured: HttpTarget) -> None:
    """Three dialects, one table."""
    agents = kafka.nodes[1].agents
    new = await table(JolokiaSource("new", HttpTarget(url=agents.jolokia)))
    old = await table(JolokiaSource("old", secured))
    text = await table(PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter)))
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


async def test_a_controller_reports_its_event_queue(kafka: Cluster) -> None:
    """Kafka's histogram of how long its events waited, which a mutation quota is chosen by."""
    source = JolokiaSource("a", HttpTarget(url=kafka.nodes[1].agents.jolokia))
    reported = {
        attribute: value
        for (bean, attribute), value in numbers(await table(source)).items()
        if bean.get("name") == "EventQueueTimeMs"
    }
    assert reported.keys() == {"Mean", "Count"}
    assert reported["Count"] > 0


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


def plain(kafka: Cluster, **changes: Any) -> HttpTarget:
    """Jolokia 2 without TLS."""
    return HttpTarget(**{"url": kafka.nodes[1].agents.jolokia, **changes})


@pytest.mark.parametrize(
    ("of", "expected", "text"),
    [
        # Jolokia answers 401
        (lambda _, secured: replace(secured, password="wrong"), SourceDenied, "basic_auth"),
        (lambda _, secured: replace(secured, password=""), SourceDenied, "basic_auth"),
        # the message says which setting makes the certificate trusted
        (lambda _, secured: replace(secured, tls=None), SourceDenied, "tls.ca_file"),
        # Java waits for a request for ever
        (
            lambda kafka, _: plain(kafka, url=plain(kafka).url.replace("http:", "https:"), timeout_seconds=0.3),
            SourceUnreachable,
            "does not speak https",
        ),
        # Java hangs up without a word
        (lambda _, secured: HttpTarget(url=secured.url.replace("https:", "http:")), SourceError, "https"),
        # Jolokia is not at the root
        (lambda kafka, _: plain(kafka, url=plain(kafka).url.replace("/jolokia", "/nothing")), SourceUnreadable, "/jolokia"),
        # another agent, and the broker's own port
        (lambda kafka, _: plain(kafka, url=kafka.nodes[1].agents.jmx_exporter), SourceUnreadable, ""),
        (lambda kafka, _: plain(kafka, url=f"http://{kafka.admin}/jolokia", timeout_seconds=0.5), (SourceUnreachable, SourceUnreadable), ""),
        (lambda kafka, _: plain(kafka, max_bytes=100), SourceUnreadable, "longer than"),
    ],
    ids=["wrong password", "no password", "unknown authority", "https to plain", "plain to https", "path", "other agent", "listener", "too long"]
)  # fmt: skip
async def test_what_goes_wrong_says_what_to_look_at(
    kafka: Cluster,
    secured: HttpTarget,
    of: Callable[[Cluster, HttpTarget], HttpTarget],
    expected: type[SourceError] | tuple[type[SourceError], ...],
    text: str,
) -> None:
    """And leaves nothing behind: a source that is asked properly works."""
    error = await failure(JolokiaSource("a", of(kafka, secured)))
    assert isinstance(error, expected)
    assert text in str(error)
    assert (await table(JolokiaSource("a", plain(kafka)))).node_id == "1"


async def test_jolokia_is_no_prometheus_text(kafka: Cluster) -> None:
    """A url under the wrong dialect is reported as such."""
    error = await failure(PrometheusTextSource("a", plain(kafka)))
    assert isinstance(error, SourceUnreadable)


async def test_verification_can_be_switched_off(secured: HttpTarget) -> None:
    """For a certificate that cannot be checked."""
    source = JolokiaSource("a", replace(secured, tls=Tls(verify=False).context()))
    assert (await table(source)).node_id == "1"
