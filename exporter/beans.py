"""What a source read: names parsed once, then only arrays of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bean:
    """
    The name of one MBean, in whichever dialect it was written.

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
        pairs = (
            (key, value)
            if value.isascii()
            else (key, value.encode(errors="replace").decode())
            for key, value in properties.items()
        )
        return cls(domain, tuple(sorted(pairs)))

    def get(self, key: str) -> str | None:
        """The value of one key property, or None when the name has none."""
        return next((value for name, value in self.properties if name == key), None)


@dataclass(frozen=True, slots=True)
class BeanColumn:
    """One attribute of one bean: the place of one number in a table."""

    bean: Bean
    attribute: str
    mapped: object = field(default=None, compare=False, repr=False)
    """What it means (``mapping.Attribute``); None as long as it was not looked up."""


@dataclass(frozen=True, slots=True, eq=False)
class BeanLayout:
    """
    The columns of a table, each of them once.

    A source returns the same object as long as it sees the same beans, so whatever was
    derived from a layout may be kept under its identity. Columns that two layouts of one
    source share are the same objects.
    """

    columns: tuple[BeanColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeanTable:
    """One read of one broker or controller: a number for each column."""

    node_id: str
    """Node id of the broker or controller that answered."""
    layout: BeanLayout
    values: array[float] = field(repr=False)
    """float64, one for each column; NaN where the broker says NaN or null."""
    remark: str | None = None
    """What is wrong with the answer although it could be read, and what to do."""
    hint: str | None = None
    """What to check if there are quotas, because the answer had no series of any entity."""

    def items(self) -> Iterator[tuple[BeanColumn, float]]:
        """Columns with their numbers."""
        return zip(self.layout.columns, self.values, strict=True)
