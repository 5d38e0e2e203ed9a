"""
The layouts of lines, by the Kafka releases that write them.

A line does not name its broker's version, and its frame is the same since KIP-673: what differs are fields and versions of APIs. So a
line is put down to the oldest layout that its content gives away; one that an older broker could have written as well counts as the
current layout, which reads it the same way.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is known of the lines of some releases."""

    name: str
    """What the column `layout` says."""
    releases: str
    source: str
    """Where this knowledge comes from: logs of real brokers, or documentation only."""


CURRENT: Final = Layout(
    name="4.x",
    releases="4.0 and later",
    source="logs of real brokers, 4.3.1 and 4.4.0",
)
DEPRECATIONS: Final = Layout(
    name="3.8 (documented)",
    releases="3.8 and 3.9",
    source="documentation: KIP-896 adds requestApiVersionDeprecated to the header",
)
FIRST: Final = Layout(
    name="2.8 (documented)",
    releases="2.8 to 3.7",
    source="documentation: KIP-673, and the APIs and versions that KIP-896 removed in 4.0",
)
LAYOUTS: Final = (CURRENT, DEPRECATIONS, FIRST)

_NO_LONGER_IN_4_0: Final = (4, 5, 6, 7)
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown: the controller's in ZooKeeper mode."""
_OLDEST_IN_4_0: Final = {
    0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 20: 1, 23: 2, 29: 1, 30: 1, 31: 1, 32: 1, 34: 1, 35: 1, 38: 1, 39: 1, 40: 1, 41: 1,
}  # fmt: skip
"""Oldest version by API key, of those that lost some (KIP-896)."""

_NAMES: Final = tuple(layout.name for layout in LAYOUTS)


def layout_of(api_key: int, api_version: int, *, deprecated: bool) -> str:
    """Name of the layout that a line is put down to."""
    if deprecated:
        return _NAMES[1]
    if api_version < _OLDEST_IN_4_0.get(api_key, 0) or api_key in _NO_LONGER_IN_4_0:
        return _NAMES[2]
    return _NAMES[0]
