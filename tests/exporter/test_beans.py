"""What a bean's name says."""

from array import array

from quotascope.exporter.beans import Bean, BeanColumn, BeanLayout, BeanTable


def test_the_order_of_properties_does_not_matter() -> None:
    """Jolokia 1 sorts them, Jolokia 2 and Kafka do not."""
    one = Bean.of("kafka.server", {"type": "Fetch", "user": "a"})
    assert one == Bean.of("kafka.server", {"user": "a", "type": "Fetch"})
    assert (one.get("user"), one.get("client-id")) == ("a", None)


def test_a_table_pairs_columns_with_numbers() -> None:
    """In the order of the layout."""
    column = BeanColumn(Bean.of("d", {"type": "t"}), "a")
    table = BeanTable(
        node_id="1", layout=BeanLayout((column,)), values=array("d", [1.0])
    )
    assert list(table.items()) == [(column, 1.0)]
