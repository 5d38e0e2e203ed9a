"""
The types of client quotas, a row for each; and entities with quotas: users, client-ids, pairs, and their defaults.

Names are decoded everywhere in this module and in `rules`: a user is the principal's name as people
write it (`CN=app,O=Org`), never Kafka's percent-encoded tag. Only a quota manager sanitizes, when it
makes tags for the registry (`principal.Principal`).
"""

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .errors import InvalidConfig
from .numbers import INT_MAX, LONG_MAX
from .protocol import ApiKey


class QuotaValueType(Enum):
    """The type that Kafka's schema gives the value of a quota key; the value is its largest number."""

    LONG = float(LONG_MAX)
    INT = float(INT_MAX)
    DOUBLE = math.inf


@dataclass(frozen=True)
class Unit:
    """The unit of usage and limit, ours and Kafka's."""

    name: str
    """Our unit, in names of metrics and in the API, such as ``bytes_per_second``."""
    in_limit_names: str
    """The same after the word ``limit`` in names of metrics."""
    short: str
    """Kafka's unit in tables, such as ``B/s``."""
    words: str
    """Kafka's unit in sentences, such as ``% of a thread``."""
    divisor: float
    """Kafka's unit divided by this is ours."""
    unreached: float
    """A limit in Kafka's unit that is far above what a broker can do."""
    prefixed: bool = False
    """Whether large numbers have a prefix: ``kB/s``, ``MB/s``."""

    @property
    def documented(self) -> str:
        """Our unit in the documentation, such as ``bytes/s``."""
        return self.name.replace("_per_second", "/s")


BYTES_PER_SECOND: Final = Unit(
    "bytes_per_second", "bytes_per_second", "B/s", "B/s", divisor=1.0, unreached=1e12, prefixed=True
)
THREADS: Final = Unit("threads", "threads", "%", "% of a thread", divisor=100.0, unreached=1e6)
MUTATIONS_PER_SECOND: Final = Unit(
    "mutations_per_second", "per_second", "mut/s", "mutations/s", divisor=1.0, unreached=1e9
)


@dataclass(frozen=True)
class _Row:
    quota_key: str
    value_type: QuotaValueType
    attribute: str
    unit: Unit
    stem: str
    title: str
    apis: tuple[ApiKey, ...] = ()
    spellings: tuple[str, ...] = ()
    token_bucket: bool = False


_ROWS: Final = {
    "Produce": _Row(
        quota_key="producer_byte_rate",
        value_type=QuotaValueType.LONG,
        attribute="byte-rate",
        unit=BYTES_PER_SECOND,
        stem="produce",
        title="produce",
        apis=(ApiKey.PRODUCE,),
        spellings=("producer",),
    ),
    "Fetch": _Row(
        quota_key="consumer_byte_rate",
        value_type=QuotaValueType.LONG,
        attribute="byte-rate",
        unit=BYTES_PER_SECOND,
        stem="fetch",
        title="fetch",
        apis=(ApiKey.FETCH, ApiKey.SHARE_FETCH),
        spellings=("consumer", "consume"),
    ),
    "Request": _Row(
        quota_key="request_percentage",
        value_type=QuotaValueType.DOUBLE,
        attribute="request-time",
        unit=THREADS,
        stem="request",
        title="request time",
    ),
    "ControllerMutation": _Row(
        quota_key="controller_mutation_rate",
        value_type=QuotaValueType.DOUBLE,
        attribute="mutation-rate",
        unit=MUTATIONS_PER_SECOND,
        stem="controller",
        title="controller mutation",
        apis=(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS),
        spellings=("mutation", "mutations"),
        token_bucket=True,
    ),
}
"""By Kafka's name; the fields are those of `QuotaType`."""


class QuotaType(Enum):
    """
    The types of client quotas; the value is Kafka's name (`QuotaType`, `ClientQuotaType`).

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

    label: str
    """The value of our label `quota_type`, such as `controller_mutation`."""
    group: str
    """Kafka's metric group and the `type` of its MBeans, such as `ControllerMutation`."""
    quota_key: str
    """The dynamic configuration key that sets such a quota (KIP-546, KIP-599)."""
    value_type: QuotaValueType
    """The type of the value of `quota_key`."""
    attribute: str
    """The attribute of the MBeans that has the usage, in Kafka's unit."""
    unit: Unit
    """The unit of usage and limit."""
    stem: str
    """The word before the unit in the name of the family of usages: `kafka_quota_produce_bytes_per_second`."""
    title: str
    """The name on dashboards."""
    apis: tuple[ApiKey, ...]
    """The requests that such a quota throttles; none stands for all that have thread time."""
    spellings: tuple[str, ...]
    """Other names of the group, in lower case, that rules of agents use."""
    token_bucket: bool
    """True if the controller enforces it by a token bucket (KIP-599), false if brokers do by a rate over windows."""

    def __init__(self, group: str) -> None:
        row = _ROWS[group]
        self.label, self.group = self.name.lower(), group
        self.quota_key, self.value_type, self.attribute = row.quota_key, row.value_type, row.attribute
        self.unit, self.stem, self.title = row.unit, row.stem, row.title
        self.apis, self.spellings, self.token_bucket = row.apis, row.spellings, row.token_bucket

    @property
    def of_bytes(self) -> bool:
        """True if it limits bytes per second."""
        return self.unit is BYTES_PER_SECOND

    @classmethod
    def of_quota_key(cls, key: str) -> "QuotaType | None":
        """Return the type that `key` limits, None for keys of other quotas (`connection_creation_rate`)."""
        return _BY_QUOTA_KEY.get(key)

    def in_base_unit(self, value: float) -> float:
        """Return a usage or limit in the base unit: request time in threads instead of percent, others unchanged."""
        return value / self.unit.divisor

    def in_kafka_unit(self, value: float) -> float:
        """Return a usage or limit in Kafka's unit: the inverse of `in_base_unit`."""
        return value * self.unit.divisor


TYPE_LABELS: Final = " or ".join(", ".join(kind.label for kind in QuotaType).rsplit(", ", 1))
"""The labels of all types, as a text."""
_BY_QUOTA_KEY: Final[dict[str, QuotaType]] = {quota_type.quota_key: quota_type for quota_type in QuotaType}


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

    @property
    def number(self) -> int:
        """Its place, 1 being the strongest; `NONE` is behind all."""
        return _NUMBERS[self]


_NUMBERS = {level: number for number, level in enumerate(Level, start=1)}
LEVEL_NAMES: Final = {
    Level.USER_CLIENT: "1 user / client-id",
    Level.USER_DEFAULT_CLIENT: "2 user / <default>",
    Level.USER: "3 user",
    Level.DEFAULT_USER_CLIENT: "4 <default> / client-id",
    Level.DEFAULT_USER_DEFAULT_CLIENT: "5 <default> / <default>",
    Level.DEFAULT_USER: "6 user <default>",
    Level.CLIENT: "7 client-id",
    Level.DEFAULT_CLIENT: "8 client-id <default>",
}
"""What rules of a level look like (`QuotaEntity.rule`)."""
LEVELS_LEGEND: Final = f"levels (1 wins): {', '.join(LEVEL_NAMES.values())}"


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
        """Level of the entity in the precedence; never `Level.NONE`."""
        return _LEVELS[_kind(self.user), _kind(self.client_id)]

    @property
    def rule(self) -> str:
        """The rule for this entity: the number of its level, and the entity."""
        return f"{self.level.number} {self}"

    def __str__(self) -> str:
        return spelled(self.user, self.client_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The configured entity that applies, and its bound."""

    level: Level
    """The level of `entity`, `Level.NONE` when nothing applies."""

    entity: QuotaEntity | None
    """The configured entity, None when nothing applies."""

    bound: float | None
    """The limit in the unit of the quota type, None for unlimited."""


NO_RULE: Final = Resolution(level=Level.NONE, entity=None, bound=None)
"""Nothing applies: the client is measured but not limited."""

_LONGEST: Final = 200
_BARE: Final = re.compile(r"""[^\s"'`<>\\…]+""")


def spelled(user: Name | None, client_id: Name | None) -> str:
    r"""
    Return a user, a client-id or both as one line for people; None is an absent dimension.

    No two entities are spelled alike, whatever their names are: a name stands in quotes, with escapes as in Python,
    unless it is printable and has no blank, quote, backslash nor angle bracket; of a name beyond 200 characters a
    digest stands for the rest.

    >>> spelled("alice", "etl"), spelled("alice", None), spelled(DEFAULT, None), spelled(None, DEFAULT)
    ('alice / etl', 'user alice', 'user <default>', 'client-id <default>')
    >>> spelled("CN=a, O=b", "")
    '"CN=a, O=b" / ""'
    >>> spelled("<default>", DEFAULT)
    '"<default>" / <default>'
    """
    if user is None:
        return f"client-id {spelled_name('' if client_id is None else client_id)}"
    if client_id is None:
        return f"user {spelled_name(user)}"
    return f"{spelled_name(user)} / {spelled_name(client_id)}"


def spelled_name(name: Name) -> str:
    """Return one dimension of `spelled`."""
    if not isinstance(name, str):
        return "<default>"
    if len(name) <= _LONGEST and name.isprintable() and _BARE.fullmatch(name):
        return name
    escaped = "".join(
        f"\\{char}" if char in '"\\' else char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in name[:_LONGEST]
    )
    if len(name) <= _LONGEST:
        return f'"{escaped}"'
    from hashlib import sha256  # noqa: PLC0415 - few names need it, and programs that import the catalog start sooner

    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    return f'"{escaped}"…{digest}'


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
