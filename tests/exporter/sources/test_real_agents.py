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


def named(found: BeanTable, name: str, key: str = "name") -> dict[str, float]:
    """The attributes of the bean that has this name."""
    return {attribute: value for (bean, attribute), value in numbers(found).items() if bean.get(key) == name}


async def test_all_agents_report_what_a_node_says_of_itself(kafka: Cluster, secured: HttpTarget) -> None:
    """Its id and start, that it leads, and how long its controller's events waited, by which a mutation quota is chosen."""
    agents = kafka.nodes[1].agents
    unchecked = replace(secured, tls=Tls(verify=False).context())  # for a certificate that cannot be checked
    sources = (
        JolokiaSource("new", HttpTarget(url=agents.jolokia)),
        JolokiaSource("without its last slash", HttpTarget(url=agents.jolokia.rstrip("/"))),
        JolokiaSource("old", secured),
        JolokiaSource("unchecked", unchecked),
        PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter)),
    )
    found = [await table(source) for source in sources]
    assert [each.node_id for each in found] == ["1"] * len(sources)
    starts = [named(each, "app-info", "type") for each in found]
    assert [*starts[0]] == ["StartTimeMs"]
    assert starts == starts[:1] * len(sources)
    for each in found:
        assert [*named(each, "ActiveControllerCount").values()] == [1.0]
    waited = named(found[0], "EventQueueTimeMs")
    assert waited.keys() == {"Mean", "Count"}
    assert waited["Count"] > 0


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
    assert isinstance(await failure(PrometheusTextSource("a", plain(kafka))), SourceUnreadable)
