"""What a Jolokia agent is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...mapping import ATTRIBUTES, SERVER, Attribute


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read of all MBeans that a pattern matches."""

    pattern: str
    attributes: tuple[str, ...]
    """Empty for all attributes."""


def _by_type() -> Iterator[ReadRequest]:
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


def _at_once() -> Iterator[ReadRequest]:
    """
    All of one domain by the names of its attributes, which no other beans have.

    For each pattern of key properties the JVM looks at every bean of the domain, and at 15,000 of them for as long
    as it takes to read a tenth of them. Going by attributes it looks once, and the agent leaves out beans that have none.
    """
    wanted = (each for each in ATTRIBUTES if each.brokers_have_it)
    names = dict.fromkeys(each.name for each in wanted if each.domain == SERVER)
    yield ReadRequest(f"{SERVER}:*", tuple(names))
    yield from (each for each in BY_TYPE if not each.pattern.startswith(f"{SERVER}:"))


BY_TYPE: Final = tuple(_by_type())
"""One read for each kind of bean: for agents that cannot read all of a domain."""

REQUESTS: Final = tuple(_at_once())
"""The same numbers in fewer reads, in the order in which the agent answers them."""


def bulk_request(requests: Sequence[ReadRequest] = REQUESTS) -> bytes:
    """The body of one POST for all of these."""
    return json.dumps(
        [
            {"type": "read", "mbean": request.pattern}
            | ({"attribute": list(request.attributes)} if request.attributes else {})
            for request in requests
        ]
    ).encode()
