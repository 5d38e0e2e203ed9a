"""Page after page of one agent, in the dialect that each is in."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from operator import mul
from typing import Final

from ...beans import BeanColumn, BeanLayout
from ...errors import SourceUnreadable
from ...mapping import attribute_of
from ...untrusted import shown
from ..columns import Columns
from .detection import detected, is_kafka
from .dialect import TextDialect
from .entity_in_name import ADVICE, mangled_name
from .samples import Key, numbers_in, page_of, text_of
from .series import parse_series

UNDETECTED: Final = "prometheus"
"""The dialect of an agent that has not shown any yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one page held."""

    layout: BeanLayout
    values: array[float]
    remark: str | None = None
    """What is wrong with it although it could be read."""
    hint: str | None = None
    """What to check, because it has no series of any entity."""
    mistake: str | None = None
    """Which dialect it is in instead of the one that is forced, when it has no series of any entity."""


class TextReader:
    """
    Finds out the dialect of each page, and keeps what it learned of its series.

    Args:
        forced: The dialect that all pages are in, or None to find out.

    """

    def __init__(self, forced: TextDialect | None = None) -> None:
        self._forced = forced
        self._dialect = forced
        self._columns = Columns(self._column_of)
        self._layout = BeanLayout(())
        self._has_entities = False
        self._factors: list[float] | None = None

    @property
    def dialect(self) -> str:
        """Of the last page that showed one."""
        return self._dialect.name if self._dialect else UNDETECTED

    def read(self, answer: bytes) -> Reading:
        """The columns and numbers of a page. Raises ``SourceUnreadable``."""
        page = page_of(answer)
        self._settle(page)
        keys, numbers = self._numbers(page)
        layout, values = self._columns.place(keys, numbers)
        if layout is not self._layout:
            self._learn(layout)
        if self._factors is not None:
            values = array("d", map(mul, values, self._factors))
        remark = self._remark(page)
        mistake = None if self._has_entities else self._mistake(page)
        hint = None if self._has_entities else mistake or self._advice()
        return Reading(
            layout=layout, values=values, remark=remark, hint=hint, mistake=mistake
        )

    def _settle(self, page: str) -> None:
        if self._forced is not None:
            return
        found = detected(page)
        if found is not None and found is not self._dialect:
            self._dialect = found
            self._columns = Columns(self._column_of)

    def _numbers(self, page: str) -> tuple[list[Key], list[float]]:
        prefixes = self._dialect.prefixes if self._dialect else ()
        keys, numbers = numbers_in(page, prefixes)
        if not keys and not is_kafka(page):
            raise SourceUnreadable(
                "the answer holds no metric of Kafka: is this the metrics agent of a broker or controller, "
                "and do its rules name Kafka's metrics kafka_…?"
            )
        return keys, numbers

    def _learn(self, layout: BeanLayout) -> None:
        self._layout = layout
        self._has_entities = any(map(_is_entity, layout.columns))
        factor_of = self._dialect.factor_of if self._dialect else None
        self._factors = factor_of and [factor_of(each) for each in layout.columns]

    def _remark(self, page: str) -> str | None:
        mangled = mangled_name(page)
        if mangled is None:
            return None
        text = (
            f"this agent's rules put user and client-id into names of metrics ({shown(mangled)}), "
            f"from which they cannot be recovered: {ADVICE}"
        )
        if not self._has_entities:
            raise SourceUnreadable(text)
        return text

    def _mistake(self, page: str) -> str | None:
        other = detected(page) if self._forced else None
        if self._forced is None or other is None or other is self._forced:
            return None
        return f"the configuration says dialect {self._forced.name}, but the answer is in {other.name}"

    def _advice(self) -> str:
        if self._dialect is None:
            return "no name of a metric is one that a known dialect has for quotas: check the agent's rules, or use those that `quotascope rules jmx-exporter` writes"
        return self._dialect.advice

    def _column_of(self, key: Key) -> BeanColumn | None:
        if self._dialect is None:
            return None
        key = text_of(key)
        try:
            return self._dialect.column_of(*parse_series(key))
        except ValueError as error:
            raise SourceUnreadable(
                f"the answer is not Prometheus text: {error} ({shown(key)})"
            ) from None


def _is_entity(column: BeanColumn) -> bool:
    attribute = attribute_of(column)
    return (
        attribute is not None
        and attribute.quota_type is not None
        and len(column.bean.properties) > 1
    )
