"""Names and tags, which identify a metric."""

from collections.abc import Mapping

from ..kafka.jmx import Tags


class MetricName:
    """
    A name within a group, with tags (Kafka: `MetricName`).

    The order of the tags is kept, since it shapes the MBean's name; neither it nor the description counts for
    equality.
    """

    __slots__ = ("_hash", "description", "group", "name", "tags")

    def __init__(self, name: str, group: str, tags: Tags = (), description: str = "") -> None:
        self.name: str = name
        self.group: str = group
        self.tags: Mapping[str, str] = dict(tags)
        self.description: str = description
        self._hash: int = hash((group, name, frozenset(self.tags.items())))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MetricName)
            and self.name == other.name
            and self.group == other.group
            and self.tags == other.tags
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["MetricName"], tuple[str, str, dict[str, str], str]]:
        return MetricName, (self.name, self.group, dict(self.tags), self.description)

    def __repr__(self) -> str:
        return f"MetricName({self.name!r}, {self.group!r}, {dict(self.tags)!r})"


class MetricNameTemplate:
    """A name with tag keys and without tag values (Kafka: `MetricNameTemplate`)."""

    __slots__ = ("description", "group", "name", "tag_names")

    def __init__(self, name: str, group: str, tag_names: tuple[str, ...] = (), description: str = "") -> None:
        self.name: str = name
        self.group: str = group
        self.tag_names: tuple[str, ...] = tag_names
        self.description: str = description
