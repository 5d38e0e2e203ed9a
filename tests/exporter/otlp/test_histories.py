"""Whatever happens from one snapshot to the next, a push has the series that a scrape of the same snapshot shows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW
from tests.exporter.exposition.pages import History
from tests.exporter.otlp.messages import pushed, scraped

from quotascope.exporter.otlp.encoding import Encoder, resource_of, unix_ns
from quotascope.exporter.otlp.push import Starts


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), cluster=st.sampled_from((None, "prod", "\udfff")))
def test_any_history_is_as_scraped(seed: int, cluster: str | None) -> None:
    """Names, attributes and values are those of the page, however values, entities, rules, nodes and labels change."""
    history = History(seed)
    resource = resource_of("http://127.0.0.1:9749", cluster and "c", {})
    encoder = Encoder(resource, cluster, 100_000, Starts(1))
    for _ in range(6):
        shown = history.next()
        requests = encoder.requests(encoder.points(shown, NOW), unix_ns(NOW))
        series = pushed(request.message for request in requests)
        assert series == scraped(shown, NOW, cluster)
