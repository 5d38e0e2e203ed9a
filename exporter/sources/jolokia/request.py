"""What a Jolokia agent is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...mapping import ATTRIBUTES, Attribute


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read of all MBeans that a pattern matches."""

    pattern: str
    attributes: tuple[str, ...]
    """Empty for all attributes."""


def _read_requests() -> Iterator[ReadRequest]:
    by_pattern: dict[str, list[Attribute]] = {}
    for attribute in ATTRIBUTES:
        if attribute.brokers_have_it:
            # A pattern even for a single bean: its answer has the same shape, and a bean that is missing costs nothing.
            by_pattern.setdefault(attribute.pattern, []).append(attribute)
    for pattern, attributes in by_pattern.items():
        # Quota beans have nothing but what is wanted; naming it would save no byte.
        all_of_it = any(attribute.quota_type for attribute in attributes)
        names = {} if all_of_it else dict.fromkeys(each.name for each in attributes)
        yield ReadRequest(pattern, tuple(names))


REQUESTS: Final = tuple(_read_requests())
"""In the order in which the agent answers them."""


def bulk_request() -> bytes:
    """The body of one POST for all of ``REQUESTS``."""
    return json.dumps(
        [
            {"type": "read", "mbean": request.pattern}
            | ({"attribute": list(request.attributes)} if request.attributes else {})
            for request in REQUESTS
        ]
    ).encode()
