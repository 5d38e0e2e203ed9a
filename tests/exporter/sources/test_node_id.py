"""Which node a source belongs to."""

import pytest

from quotascope.exporter.beans import Bean, BeanColumn, BeanLayout
from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.source import NodeId


def layout(*properties: dict[str, str]) -> BeanLayout:
    """A layout of these beans of kafka.server."""
    return BeanLayout(
        tuple(BeanColumn(Bean.of("kafka.server", each), "a") for each in properties)
    )


def test_the_node_tells_its_id() -> None:
    """Kafka registers its version under its id."""
    told = layout({"type": "Produce"}, {"type": "app-info", "id": "7"})
    node = NodeId(None)
    assert node.of(told) == "7"
    assert node.of(told) == "7"
    assert node.of(layout({"type": "app-info", "id": "8"})) == "8"


def test_what_is_no_number_is_no_id() -> None:
    """Something else in the same JVM may register itself, too; of two numbers the smaller one counts."""
    told = layout(
        *(
            {"type": "app-info", "id": text}
            for text in ("<b>", "10", "9", "²", "1" * 5_000)
        )
    )
    assert NodeId(None).of(told) == "9"


def test_the_configured_id_counts() -> None:
    """Where an agent says none; one that says another is not the agent that was meant."""
    assert NodeId("3").of(layout()) == "3"
    assert NodeId("3").of(layout({"type": "app-info", "id": "3"})) == "3"
    with pytest.raises(
        SourceUnreadable, match="node 7, but this source should be node 3"
    ):
        NodeId("3").of(layout({"type": "app-info", "id": "7"}))


def test_nobody_telling_is_an_error_that_says_what_to_configure() -> None:
    """Without an id the label `broker` would be made up."""
    with pytest.raises(SourceUnreadable, match="configure node_id"):
        NodeId(None).of(layout({"type": "Produce"}))
