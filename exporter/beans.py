"""What a source read: names parsed once, then only arrays of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bean:
    """
    What one MBean name says, whatever the dialect it came in.

    Property values are unquoted, but otherwise as Kafka wrote them: ``user`` is
    still percent-encoded.
    """

    domain: str
    """JMX domain, such as ``kafka.server``."""
    properties: tuple[tuple[str, str], ...]
    """Key properties sorted by key, ``type`` included."""

    @classmethod
    def of(cls, domain: str, properties: Mapping[str, str]) -> Bean:
        """
        Make a bean from properties in any order.

        Halves of surrogate pairs, which no UTF-8 text can hold, become question marks.
        """
        return cls(
            domain,
            tuple(
                sorted(
                    (key, value if value.isascii() else _without_surrogates(value))
                    for key, value in properties.items()
                )
            ),
        )

    def get(self, key: str) -> str | None:
        """The value of one key property, or None when the name has none."""
        return next((value for name, value in self.properties if name == key), None)


def _without_surrogates(text: str) -> str:
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of one bean: the place of one number in a table."""

    bean: Bean
    attribute: str
    mapped: object = field(default=None, compare=False, repr=False)
    """What the mapping says of it (``mapping.Attribute``); None while it was not looked up."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """
    The columns of a table, each of them once.

    A source hands out the same object as long as it sees the same beans, so
    whatever was derived from a layout may be kept under its identity. Columns that
    two layouts of one source share are the same objects.
    """

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeanTable:
    """One read of one broker or controller: a number for each column."""

    node_id: str
    """Node id of the broker or controller that answered."""
    layout: Layout
    values: array[float] = field(repr=False)
    """float64, one for each column; NaN where the broker says NaN or null."""
    remark: str | None = None
    """What is wrong with the answer although it could be read, and what to do."""
    hint: str | None = None
    """What to check if there are quotas, because the answer had no series of any entity."""

    def items(self) -> Iterator[tuple[Column, float]]:
        """Columns with their numbers."""
        return zip(self.layout.columns, self.values, strict=True)
