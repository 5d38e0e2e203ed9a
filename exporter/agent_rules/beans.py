"""
The MBeans of a Kafka node that report quotas, each attribute with a number of its own.

They have names as clients may have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.jmx import quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

from ..coverage import EntityKind
from ..mapping import ATTRIBUTES, SERVER, Attribute, Meaning
from .collector import Reading

NODE_ID: Final = "1"
ORDINARY: Final = (("alice", "app"), ("bob", "etl-2.0"))
"""Two entities of each kind: a rule that loses a name makes one line of both."""
UNUSUAL: Final = (
    ("svc:team a", "a,b=c"),
    ("ünï@x", 'q"uo"te\\'),
    ("CN=x,O=y", "x, user=y, client-id=z"),
    ("a*b?", "line\nbreak"),
    ("0", "><>byte-rate: 1"),
)
"""Names that Kafka percent-encodes, and Java quotes."""
_FREE: Final = {"request": "Produce", "listener": "PLAINTEXT", "ip": "10.0.0.1", "id": NODE_ID}
_LATER: Final = frozenset({"quota-utilization"})
"""Attributes of releases to come (KIP-1373)."""


def is_quota_fact(attribute: Attribute) -> bool:
    """Return whether an attribute is about quotas, and of each node."""
    return (
        not attribute.open
        and not attribute.optional
        and attribute.name not in _LATER
        and attribute.meaning not in {Meaning.REQUEST_THROTTLE_MEAN, Meaning.REQUEST_THROTTLE_COUNT}
    )


def names_of_entities(kind: EntityKind, *, unusual: bool) -> Iterator[tuple[str, str]]:
    """Yield users and client-ids of entities of one kind; a name that the kind lacks is empty."""
    has_user, has_client_id = kind is not EntityKind.CLIENT_ID, kind is not EntityKind.USER
    for user, client_id in UNUSUAL if unusual else ORDINARY:
        yield user if has_user else "", client_id if has_client_id else ""


def readings() -> Iterator[tuple[Attribute, EntityKind | None, bool, Reading]]:
    """Yield the attributes of all beans with their meaning, the kind of their entity, and whether names are unusual."""
    numbers = count(1001)
    for attribute in filter(is_quota_fact, ATTRIBUTES):
        if "user" in attribute.free:
            for kind in EntityKind:
                for unusual in (False, True):
                    for user, client_id in names_of_entities(kind, unusual=unusual):
                        tags = {"user": sanitize(user) if user else "", "client-id": client_id}
                        names = tuple((key, quote_tag_value(value)) for key, value in tags.items() if value)
                        yield attribute, kind, unusual, _reading(attribute, names, next(numbers))
        else:
            free = tuple((key, _FREE[key]) for key in attribute.free if key in _FREE)
            yield attribute, None, False, _reading(attribute, free, next(numbers))


def other_readings() -> Iterator[Reading]:
    """Yield attributes that are not about quotas, but that greedy rules match as well."""
    for name in ("CommitId", "Version"):
        yield Reading(SERVER, (("type", "app-info"), ("id", NODE_ID)), name, "4.3.1")
    started = 1.79e12
    yield Reading(SERVER, (("type", "app-info"),), "start-time-ms", started)
    yield Reading(SERVER, (("type", "app-info"), ("client-id", NODE_ID)), "start-time-ms", started)
    yield Reading(SERVER, (("type", "BrokerTopicMetrics"), ("name", "BytesInPerSec"), ("topic", "t")), "Count", 5.0)
    for kind in QuotaType:  # clients without a name, which Kafka counts together
        yield Reading(SERVER, (("type", kind.group),), "quota-utilization", 7.0)


def _reading(attribute: Attribute, names: tuple[tuple[str, str], ...], number: int) -> Reading:
    """Return a reading of an attribute, with this number unless it is a time of start."""
    value = 1.79e12 if attribute.meaning is Meaning.STARTED_AT else float(number)
    properties = (("type", attribute.type), *attribute.fixed.items(), *names)
    return Reading(attribute.domain, properties, attribute.name, value)
