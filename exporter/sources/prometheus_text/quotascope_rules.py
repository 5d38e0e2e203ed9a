"""The dialect of a jmx_exporter with our own rules (``quotascope rules jmx-exporter``): the same table read backwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from quotascope.metrics import MalformedName, unquote_tag_value

from ...beans import Bean, BeanColumn
from ...mapping import attribute_of, wanted
from ...rules.naming import NAMES, START_TIME, TAGS, Name, name_of
from .dialect import TextDialect

_BY_FAMILY: Final[dict[str, list[Name]]] = {}
for _name in NAMES:
    _BY_FAMILY.setdefault(_name.family.name, []).append(_name)

_TAG: Final = re.compile(r'([^",=:*?]+)=("(?:[^"\\]|\\.)*+"|[^",]*)(?:, |\Z)')


def column_of(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """The column of a sample, None when it is of no use."""
    for candidate in _BY_FAMILY.get(name, ()):
        if candidate.constants.items() <= labels.items():
            return _column(candidate, labels)
    return None


def _column(name: Name, labels: Mapping[str, str]) -> BeanColumn | None:
    attribute = name.attribute
    try:
        properties = {
            "type": attribute.type,
            **attribute.fixed,
            **dict(_properties(name, labels)),
        }
    except MalformedName:
        return None
    column = wanted(BeanColumn(Bean.of(attribute.domain, properties), attribute.name))
    return column if column is not None and column.mapped is attribute else None


def _properties(name: Name, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if name.attribute.open:
        yield from _tags(labels.get(TAGS, ""))
    for label, key in name.properties.items():
        if label in labels:
            yield key, unquote_tag_value(labels[label])


def _tags(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TAG.match(text, position)
        if found is None:
            raise MalformedName(text, "not the tags of a bean")
        yield found[1], unquote_tag_value(found[2])
        position = found.end()


def factor_of(column: BeanColumn) -> float:
    """What a number of this column is to be multiplied by, to be in Kafka's unit."""
    attribute = attribute_of(column)
    return 1.0 if attribute is None else name_of(attribute).divisor


QUOTASCOPE_RULES: Final = TextDialect(
    name="quotascope_rules",
    marks=(f"{START_TIME.name}{{",),
    prefixes=("kafka_quota_",),
    column_of=column_of,
    factor_of=factor_of,
    advice="there are quotas only where one is configured and a client was measured under it; if so, write the agent's rules anew with `quotascope rules jmx-exporter`",
)
