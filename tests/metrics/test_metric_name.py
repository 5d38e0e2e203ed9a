"""What identifies a metric."""

from hypothesis import given
from tests.strategies import tag_maps

from quotascope.metrics import MetricName


@given(tags=tag_maps)
def test_the_order_of_tags_is_kept_but_does_not_count(tags: dict[str, str]) -> None:
    """Names with the same tags in another order are equal, and each keeps its own order."""
    backwards = dict(reversed(tags.items()))
    name, other = MetricName("n", "g", tags), MetricName("n", "g", backwards)
    assert name == other
    assert hash(name) == hash(other)
    assert list(other.tags) == list(backwards)


def test_all_but_the_description_counts() -> None:
    """Name, group and tags tell metrics apart."""
    name = MetricName("n", "g", {"a": "b"}, "one")
    assert name == MetricName("n", "g", [("a", "b")], "two")
    others = (
        MetricName("m", "g", {"a": "b"}),
        MetricName("n", "h", {"a": "b"}),
        MetricName("n", "g"),
        "n",
    )
    assert all(name != other for other in others)


def test_does_not_change_with_the_tags_it_was_made_of() -> None:
    """A caller may go on using the mapping it gave."""
    tags = {"a": "b"}
    name = MetricName("n", "g", tags)
    tags["a"] = "c"
    assert name.tags == {"a": "b"}


def test_repr_cannot_break_a_line() -> None:
    """Hostile tags are shown escaped."""
    assert (
        repr(MetricName("n", "g", {"user": "a\nb"}))
        == "MetricName('n', 'g', {'user': 'a\\nb'})"
    )
