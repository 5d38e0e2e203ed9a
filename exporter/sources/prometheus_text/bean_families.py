"""How names of metrics are made from domain, type and attribute where no rule says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ...mapping import ATTRIBUTES, Attribute

Place = tuple[str, str, str]
"""JMX domain, the key property ``type``, and the attribute."""
_OTHER: Final = re.compile(r"[^a-zA-Z0-9_]+")


def family(attribute: Attribute) -> str:
    """The name, such as ``kafka_server_Produce_byte_rate``; many agents write it in lower case."""
    return _OTHER.sub("_", f"{attribute.domain}_{attribute.type}_{attribute.name}")


def places(attributes: Iterable[Attribute] = ATTRIBUTES) -> dict[str, Place]:
    """What the names mean, by the name in lower case."""
    return {
        family(attribute).lower(): (attribute.domain, attribute.type, attribute.name)
        for attribute in attributes
        if attribute.brokers_have_it
    }


def with_both_cases(prefixes: Iterable[str]) -> tuple[str, ...]:
    """The prefixes as they are, and in lower case."""
    return tuple(
        dict.fromkeys(each for text in prefixes for each in (text, text.lower()))
    )
