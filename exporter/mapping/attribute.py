"""One attribute of a kind of MBean, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from quotascope.metrics import QuotaType, catalog

from ..beans import Bean

SERVER: Final = "kafka.server"
MILLISECONDS: Final = 1000.0
PERCENT: Final = 100.0


class Meaning(Enum):
    """What a number says."""

    USAGE = auto()
    THROTTLE_TIME = auto()
    TOKENS = auto()
    THROTTLED_SECONDS = auto()
    THROTTLED_REQUESTS = auto()
    REJECTED_MUTATIONS = auto()
    REPORTED_UTILIZATION = auto()
    DELAY_QUEUE_SIZE = auto()
    EXEMPT_REQUEST_TIME = auto()
    REQUEST_THROTTLE_MEAN = auto()
    REQUEST_THROTTLE_COUNT = auto()
    THROTTLING_ERRORS = auto()
    ACTIVE_CONTROLLER = auto()
    STARTED_AT = auto()
    CONTROLLER_EVENT_MEAN = auto()
    CONTROLLER_EVENT_COUNT = auto()
    BROKER_CONNECTIONS = auto()
    LISTENER_CONNECTIONS = auto()
    LISTENER_CONNECTION_THROTTLE = auto()
    IP_CONNECTIONS = auto()
    IP_CONNECTION_THROTTLE = auto()
    REPLICATION = auto()
    REMOTE_STORAGE = auto()
    REMOTE_STORAGE_THROTTLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of a kind of MBean: what it means, and how it becomes a base unit."""

    domain: str = SERVER
    type: str
    """The key property ``type``; for quotas also the metric group."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Further key properties with a value that must be just so."""
    free: tuple[str, ...] = ()
    """Key properties that tell one bean from another."""
    required: bool = False
    """Whether every free key property must be there."""
    open: bool = False
    """Whether it is about beans with further key properties, of any name (see ``callback``)."""
    name: str
    """The attribute's name."""
    meaning: Meaning
    quota_type: QuotaType | None = None
    direction: str = ""
    """The label ``direction``, which no key property tells."""
    divisor: float = 1.0
    """Kafka's unit divided by this is ours."""
    family: catalog.Family | None = None
    """The family that shows it, None when it only serves others."""
    brokers_have_it: bool = True
    """False when only our own engine counts it."""

    @property
    def pattern(self) -> str:
        """The pattern of the MBeans that have it, and maybe of others."""
        fixed = "".join(f",{key}={value}" for key, value in self.fixed.items())
        return f"{self.domain}:type={self.type}{fixed},*"

    def admits(self, bean: Bean) -> bool:
        """Whether a bean of the right domain and type is meant, by its other key properties."""
        rest = {key: value for key, value in bean.properties if key != "type"}
        for key, value in self.fixed.items():
            if rest.pop(key, None) != value:
                return False
        if self.open:
            return not rest.keys() <= set(self.free)
        if self.required:
            return rest.keys() == set(self.free)
        return rest.keys() <= set(self.free)
