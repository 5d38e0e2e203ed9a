"""
The rules of one quota type, and which of them decides: Kafka's precedence of eight levels.

The same code enforces (a quota manager) and explains (the exporter). It follows `ClientQuotaManager` and its
`DefaultQuotaCallback`: as of Kafka 4.2 (KAFKA-19282), where a removed rule no longer leaves a trace, or as of an older
release.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from .entities import DEFAULT, NO_RULE, DefaultType, Level, QuotaEntity, Resolution

NO_FLAGS: Final = 0
CLIENT_ID_FLAG: Final = 1
USER_FLAG: Final = 2
USER_CLIENT_ID_FLAG: Final = 4

_Key = tuple[str | DefaultType | None, str | DefaultType | None]


class RuleTable(Mapping[QuotaEntity, float]):
    """
    Configured entities of one quota type with their bounds, and every question about them.

    Names are compared literally. A caller keeps to one spelling of users (ours: decoded).
    """

    __slots__ = ("_bounds", "_flags")

    _bounds: dict[_Key, float]
    _flags: int

    def __init__(self, bounds: dict[_Key, float], flags: int) -> None:
        self._bounds = bounds
        self._flags = flags

    def __getitem__(self, entity: QuotaEntity) -> float:
        return self._bounds[entity.user, entity.client_id]

    def __iter__(self) -> Iterator[QuotaEntity]:
        return (QuotaEntity(user, client_id) for user, client_id in list(self._bounds))

    def __len__(self) -> int:
        return len(self._bounds)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._bounds, self._flags)

    @property
    def flags(self) -> int:
        """Flags of configured shapes (`quotaTypesEnabled`), up to 4.1 of all shapes ever configured."""
        return self._flags

    @property
    def enabled(self) -> bool:
        """True if any rule exists; without one Kafka records no request of this quota type."""
        return self._flags != NO_FLAGS

    def metric_tags(self, user: str, client_id: str) -> tuple[str, str]:
        """
        Return the tags `(user, client-id)` under which a request is measured, "" for an absent one.

        With rules of one shape only, the shape alone decides, matching or not: with nothing but user rules,
        a user without a rule is measured as `(user, "")`.
        """
        flags = self._flags
        if flags <= CLIENT_ID_FLAG:
            return "", client_id
        if flags == USER_FLAG:
            return user, ""
        if flags == USER_CLIENT_ID_FLAG:
            return user, client_id
        return self._tags_of_first_match(user, client_id)

    def _tags_of_first_match(self, user: str, client_id: str) -> tuple[str, str]:
        bounds = self._bounds
        if (user, client_id) in bounds or (user, DEFAULT) in bounds:
            return user, client_id
        if (user, None) in bounds:
            return user, ""
        if (DEFAULT, client_id) in bounds or (DEFAULT, DEFAULT) in bounds:
            return user, client_id
        if (DEFAULT, None) in bounds:
            return user, ""
        return "", client_id

    def bound_of(self, user_tag: str, client_tag: str) -> float | None:
        """Return the limit of a metric with these tags, None for unlimited; the short form of `limit`."""
        key = self._deciding_key(user_tag, client_tag)
        return None if key is None else self._bounds[key]

    def limit(self, user_tag: str, client_tag: str) -> Resolution | None:
        """
        Return the configured entity that applies to a metric with these tags, None if there is none.

        Only entities of the tags' own shape count: a metric with both tags never falls back to a rule
        for the user alone.
        """
        key = self._deciding_key(user_tag, client_tag)
        if key is None:
            return None
        entity = QuotaEntity(*key)
        return Resolution(level=entity.level, entity=entity, bound=self._bounds[key])

    def _deciding_key(self, user_tag: str, client_tag: str) -> _Key | None:
        for key in _lookup_order(user_tag, client_tag):
            if key in self._bounds:
                return key
        return None

    def decide(self, user: str, client_id: str) -> Resolution:
        """
        Return the decision for a request of `user` with `client_id`: its tags first, then their limit.

        An empty client-id under rules for pairs leaves the tags `(user, "")`, which no pair limits: a client
        that sends none escapes them.
        """
        return self.limit(*self.metric_tags(user, client_id)) or NO_RULE

    def candidates(self, user: str, client_id: str) -> list[tuple[Level, QuotaEntity, float | None]]:
        """Return all eight entities that could apply, strongest first, each with its bound if it is configured."""
        users: tuple[str | DefaultType, ...] = (user, DEFAULT)
        keys: list[_Key] = [(who, what) for who in users for what in (client_id, DEFAULT, None)]
        keys.extend([(None, client_id), (None, DEFAULT)])
        entities = [(QuotaEntity(*key), self._bounds.get(key)) for key in keys]
        return [(entity.level, entity, bound) for entity, bound in entities]

    def would_record(self, user_tag: str, client_tag: str) -> bool:
        """
        Return whether some request would be measured under exactly these tags; False marks a stale metric.

        Where a tag is empty, the request may have any name, and its client-id may be empty; no principal has an
        empty name. `enabled` says whether Kafka measures requests at all: without rules, the result is for the
        recordings that it makes regardless (`throttle`, `unrecord`, `record_no_throttle`).
        """
        if self._flags <= CLIENT_ID_FLAG:
            return user_tag == ""
        if user_tag == "":
            return self._flags not in _ALWAYS_TAG_USER and not self._any_default_user(client_tag)
        if client_tag == "":
            return self._flags in _ALWAYS_TAG_USER or self._some_rule_for(user_tag)
        return self.metric_tags(user_tag, client_tag) == (user_tag, client_tag)

    def _any_default_user(self, client_id: str) -> bool:
        # A user without rules of their own is the one most likely to fall through to client rules.
        keys: tuple[_Key, ...] = (
            (DEFAULT, client_id),
            (DEFAULT, DEFAULT),
            (DEFAULT, None),
        )
        return any(key in self._bounds for key in keys)

    def _some_rule_for(self, user: str) -> bool:
        # The empty client-id shows up as (user, "") through any rule with a user dimension that matches it.
        keys: tuple[_Key, ...] = ((user, ""), (user, DEFAULT), (user, None))
        return any(key in self._bounds for key in keys) or self._any_default_user("")


class RuleSnapshot(RuleTable):
    """Rules that do not change any more; safe to hand to another thread."""

    __slots__ = ()


class QuotaRules(RuleTable):
    """
    The rules of one quota type while they are being changed.

    Not synchronized: a quota manager changes it under its write lock, others keep it to one thread.

    Args:
        rules: those in force.
        forgets_removed: whether rules in force alone decide on tags (`KafkaRelease.forgets_removed_rules`). Otherwise
            `flags` keeps each shape that was ever set, or removed, as brokers do up to 4.1 until they restart.
        flags: shapes that were seen before.

    """

    __slots__ = ("_counts", "_forgets_removed", "_snapshot")

    _counts: dict[int, int]
    _forgets_removed: bool
    _snapshot: RuleSnapshot | None

    def __init__(
        self, rules: Mapping[QuotaEntity, float] | None = None, *, forgets_removed: bool = True, flags: int = NO_FLAGS
    ) -> None:
        super().__init__({}, flags)
        self._counts = {CLIENT_ID_FLAG: 0, USER_FLAG: 0, USER_CLIENT_ID_FLAG: 0}
        self._forgets_removed = forgets_removed
        self._snapshot = None
        for entity, bound in (rules or {}).items():
            self.set(entity, bound)

    def __reduce__(self) -> tuple[object, ...]:
        return _rules_again, (dict(self), self._forgets_removed, self._flags)

    def set(self, entity: QuotaEntity, bound: float) -> None:
        """Give `entity` the limit `bound`, in the unit of the quota type."""
        self._snapshot = None
        if (entity.user, entity.client_id) not in self._bounds:
            flag = flag_of(entity)
            self._counts[flag] += 1
            self._flags |= flag
        self._bounds[entity.user, entity.client_id] = bound

    def remove(self, entity: QuotaEntity) -> bool:
        """Take away the limit of `entity`; False when it has none."""
        flag = flag_of(entity)
        if not self._forgets_removed and not self._flags & flag:
            self._flags |= flag
            self._snapshot = None
        if self._bounds.pop((entity.user, entity.client_id), None) is None:
            return False
        self._snapshot = None
        self._counts[flag] -= 1
        if self._counts[flag] == 0 and self._forgets_removed:
            self._flags &= ~flag
        return True

    def snapshot(self) -> RuleSnapshot:
        """Return an immutable copy; the same object until the next change."""
        if self._snapshot is None:
            self._snapshot = RuleSnapshot(self._bounds.copy(), self._flags)
        return self._snapshot


def _rules_again(  # pickle passes arguments by place
    rules: Mapping[QuotaEntity, float],
    forgets_removed: bool,  # noqa: FBT001
    flags: int,
) -> QuotaRules:
    return QuotaRules(rules, forgets_removed=forgets_removed, flags=flags)


def flag_of(entity: QuotaEntity) -> int:
    """Return the bit that a configured `entity` sets in the level flags."""
    if entity.user is None:
        return CLIENT_ID_FLAG
    return USER_FLAG if entity.client_id is None else USER_CLIENT_ID_FLAG


def _lookup_order(user_tag: str, client_tag: str) -> tuple[_Key, ...]:
    if user_tag and client_tag:
        return (
            (user_tag, client_tag),
            (user_tag, DEFAULT),
            (DEFAULT, client_tag),
            (DEFAULT, DEFAULT),
        )
    if user_tag:
        return (user_tag, None), (DEFAULT, None)
    if client_tag:
        return (None, client_tag), (None, DEFAULT)
    return ()


_ALWAYS_TAG_USER = (USER_FLAG, USER_CLIENT_ID_FLAG)
