"""
What a client quota limits, and whom it is set for: users, client-ids, pairs of both, and their defaults.

Names are decoded everywhere in this module and in `rules`: a user is the principal's name as people
write it (`CN=app,O=Org`), never Kafka's percent-encoded tag. Only a quota manager sanitizes, when it
makes tags for the registry (`principal.Principal`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from .errors import InvalidConfig


class QuotaType(Enum):
    """
    What a client quota counts; the value is Kafka's name for it (`QuotaType`, `ClientQuotaType`).

    Kafka calls every metric group, sensor and MBean type after this name.
    """

    PRODUCE = "Produce"
    """Bytes per second that clients write to one broker."""

    FETCH = "Fetch"
    """Bytes per second that clients read from one broker."""

    REQUEST = "Request"
    """Time of one broker's request threads, in percent of one thread."""

    CONTROLLER_MUTATION = "ControllerMutation"
    """Partitions created, added or deleted per second through the controller."""

    @property
    def group(self) -> str:
        """Kafka's metric group and the `type` of its MBeans, such as `ControllerMutation`."""
        return self.value

    @property
    def label(self) -> str:
        """The value of our label `quota_type`, such as `controller_mutation`."""
        return _LABELS[self]

    @property
    def quota_key(self) -> str:
        """The dynamic configuration key that sets such a quota (KIP-546, KIP-599)."""
        return _QUOTA_KEYS[self]

    @classmethod
    def of_quota_key(cls, key: str) -> "QuotaType | None":
        """The type that `key` limits, None for keys of other quotas (`connection_creation_rate`)."""
        return _BY_QUOTA_KEY.get(key)


_LABELS = {
    QuotaType.PRODUCE: "produce",
    QuotaType.FETCH: "fetch",
    QuotaType.REQUEST: "request",
    QuotaType.CONTROLLER_MUTATION: "controller_mutation",
}
_QUOTA_KEYS = {
    QuotaType.PRODUCE: "producer_byte_rate",
    QuotaType.FETCH: "consumer_byte_rate",
    QuotaType.REQUEST: "request_percentage",
    QuotaType.CONTROLLER_MUTATION: "controller_mutation_rate",
}
_BY_QUOTA_KEY = {key: quota_type for quota_type, key in _QUOTA_KEYS.items()}


class DefaultType:
    """The type of `DEFAULT`; there is one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEFAULT"

    def __reduce__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = DefaultType()
"""Stands for "every name without a rule of its own"; equal to no string, so not to `"<default>"`."""

Name = str | DefaultType
"""One dimension of an entity that is present: a literal name or the default."""


class Level(Enum):
    """
    The shapes of a configured entity, strongest first; the value is our label `level`.

    The order is the precedence of Kafka's `ClientQuotaManager` (KIP-55, KIP-546).
    """

    USER_CLIENT = "user_client"
    USER_DEFAULT_CLIENT = "user_default_client"
    USER = "user"
    DEFAULT_USER_CLIENT = "default_user_client"
    DEFAULT_USER_DEFAULT_CLIENT = "default_user_default_client"
    DEFAULT_USER = "default_user"
    CLIENT = "client"
    DEFAULT_CLIENT = "default_client"
    NONE = "none"
    """No configured entity applies."""


@dataclass(frozen=True, slots=True, order=False)
class QuotaEntity:
    """
    An entity that a quota is or could be configured for.

    A dimension is a literal name, `DEFAULT`, or None when the entity does not have it. The engine accepts
    an empty name, as Kafka's does; the controller refuses to store one.

    Raises:
        InvalidConfig: neither dimension is present.

    """

    user: str | DefaultType | None = None
    """The decoded principal name."""

    client_id: str | DefaultType | None = None
    """The client-id as the client sends it."""

    def __post_init__(self) -> None:
        if self.user is None and self.client_id is None:
            raise InvalidConfig("a quota entity needs a user, a client-id, or both")

    @property
    def level(self) -> Level:
        """Where the entity stands in the precedence; never `Level.NONE`."""
        return _LEVELS[_kind(self.user), _kind(self.client_id)]

    def __str__(self) -> str:
        parts = (("user", self.user), ("client-id", self.client_id))
        return ", ".join(_describe(*part) for part in parts if part[1] is not None)


def _describe(dimension: str, name: Name | None) -> str:
    return f"{dimension} {name!r}" if isinstance(name, str) else f"default {dimension}"


def _kind(name: Name | None) -> str:
    if name is None:
        return "absent"
    return "named" if isinstance(name, str) else "default"


_LEVELS = {
    ("named", "named"): Level.USER_CLIENT,
    ("named", "default"): Level.USER_DEFAULT_CLIENT,
    ("named", "absent"): Level.USER,
    ("default", "named"): Level.DEFAULT_USER_CLIENT,
    ("default", "default"): Level.DEFAULT_USER_DEFAULT_CLIENT,
    ("default", "absent"): Level.DEFAULT_USER,
    ("absent", "named"): Level.CLIENT,
    ("absent", "default"): Level.DEFAULT_CLIENT,
}
