"""
Values that a controller stores as quotas, and its answers to others.

A KRaft controller since 3.5 stores what is above 0 and fits the key's type (Kafka:
`ClientQuotaControlManager.validateQuotaKeyValue`). Before, it stores 0 as well, and any number of percent; so does the
controller in ZooKeeper mode (`ZkAdminManager.alterClientQuotas`), which looks at the range of addresses' rates, too.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from .entities import QuotaType, QuotaValueType
from .errors import MalformedName
from .host_address import host_address
from .numbers import trunc_i32, trunc_i64
from .protocol import ErrorCode
from .release import NEWEST_RELEASE, KafkaRelease

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_MOST_FRACTION = 1e-6


CLIENT_QUOTA_KEYS: Final[Mapping[str, QuotaValueType]] = {
    quota_type.quota_key: quota_type.value_type for quota_type in QuotaType
}
"""Keys for users, client-ids and pairs of both."""

IP_QUOTA_KEYS: Final[Mapping[str, QuotaValueType]] = {"connection_creation_rate": QuotaValueType.INT}
"""Keys for addresses."""

_ALL_KEYS: Final = {**CLIENT_QUOTA_KEYS, **IP_QUOTA_KEYS}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaProblem:
    """Why a controller refuses an alteration."""

    message: str
    """In words; names are escaped and cut."""

    key: str | None = None
    """The quota key that it is about, None for the entity."""

    error_code: int = ErrorCode.INVALID_REQUEST
    """Kafka's error code."""


def is_address(text: str) -> bool:
    """Return whether a text is an IP address; a controller asks its name service about anything else."""
    try:
        host_address(text)
    except MalformedName:
        return False
    return True


def validate_alteration(
    entity: Mapping[str, str | None],
    changes: Iterable[tuple[str, float | None]],
    *,
    is_host: Callable[[str], bool] = is_address,
    release: KafkaRelease = NEWEST_RELEASE,
) -> list[QuotaProblem]:
    """
    Return all that is wrong with an alteration; nothing, if a controller stores it (KIP-546).

    A controller (Kafka: `ClientQuotaControlManager`) answers with one problem only and then stores nothing of the
    alteration. Removals are not looked at: those of absent and even of unknown keys succeed.

    Args:
        entity: names by type (`user`, `client-id`, `ip`), None for the default entity.
        changes: keys with their new values in the key's unit, None for a removal.
        is_host: whether an address, or a host name, can be resolved; looks up nothing unless given.
        release: of the controller, and its mode. Up to 4.3 it stores NaN, under which no request is ever within the
            quota nor throttled, and infinity; up to 3.4, and in ZooKeeper mode, 0, and less of percent.

    """
    problems = _entity_problems(entity, is_host)
    keys = _ALL_KEYS if problems else _keys(entity)
    seen: set[str] = set()
    for key, value in changes:
        if key in seen:
            problems.append(_problem(f"{_shown(key)} is there twice", key))
        elif value is not None:
            value_problems = _value_problems(keys, key, value, release)
            if not value_problems and release.refuses_infinite_quotas and not math.isfinite(value):
                what = "a number" if math.isnan(value) else "finite"
                value_problems = [_problem(f"{_shown(key)} is not {what}", key)]
            problems.extend(value_problems)
        seen.add(key)
    return problems


def validate_request(
    alterations: Iterable[tuple[Mapping[str, str | None], Iterable[tuple[str, float | None]]]],
    *,
    is_host: Callable[[str], bool] = is_address,
    release: KafkaRelease = NEWEST_RELEASE,
) -> list[list[QuotaProblem]]:
    """
    Return what is wrong with each alteration of one request.

    An entity may come once. Of a second time a controller reports an error for the entity, although it has stored
    what the first one asked for. The options are those of `validate_alteration`.
    """
    results = []
    seen: set[frozenset[tuple[str, str | None]]] = set()
    for entity, changes in alterations:
        identity = frozenset(entity.items())
        if identity in seen:
            results.append([_problem("the entity is in the request twice")])
        else:
            results.append(validate_alteration(entity, changes, is_host=is_host, release=release))
        seen.add(identity)
    return results


def _entity_problems(entity: Mapping[str, str | None], is_host: Callable[[str], bool]) -> list[QuotaProblem]:
    if not entity:
        return [_problem("the entity is empty")]
    problems = [
        _problem(f"{_shown(kind)} is not a type of entity: {USER}, {CLIENT_ID} or {IP}")
        for kind in entity
        if kind not in (USER, CLIENT_ID, IP)
    ]
    problems += [_problem(f"the name of {_shown(kind)} is empty") for kind, name in entity.items() if name == ""]
    if IP in entity:
        problems += _ip_problems(entity, is_host)
    return problems


def _ip_problems(entity: Mapping[str, str | None], is_host: Callable[[str], bool]) -> list[QuotaProblem]:
    problems = []
    if USER in entity or CLIENT_ID in entity:
        problems.append(_problem("an ip cannot be combined with a user or client-id"))
    ip = entity[IP]
    if ip and not is_host(ip):
        problems.append(_problem(f"{_shown(ip)} is not an address that can be resolved"))
    return problems


def _value_problems(
    keys: Mapping[str, QuotaValueType], key: str, value: float, release: KafkaRelease
) -> list[QuotaProblem]:
    value_type = keys.get(key)
    if value_type is None:
        text = f"{_shown(key)} is none of this entity's keys: {', '.join(keys)}"
        close = get_close_matches(key[:60], keys, n=1)
        if close and key not in _ALL_KEYS:
            text += f"; did you mean {close[0]!r}?"
        return [_problem(text, key)]
    if not release.checks_quota_values:
        return _loose_problems(value_type, key, value, release)
    if value <= 0.0:
        return [_problem(f"{key} must be greater than 0, not {value!r}", key)]
    if value > value_type.value:
        return [_problem(f"{key} is too large for {value_type.name}: {value!r}", key)]
    if value_type is not QuotaValueType.DOUBLE and _fraction(value) > _MOST_FRACTION:
        return [_problem(f"{key} must be a whole number, not {value!r}", key)]
    return []


def _loose_problems(value_type: QuotaValueType, key: str, value: float, release: KafkaRelease) -> list[QuotaProblem]:
    if value_type is QuotaValueType.DOUBLE:
        return []
    is_int = release.zookeeper and value_type is QuotaValueType.INT
    whole = trunc_i32(value + _MOST_FRACTION) if is_int else trunc_i64(value + _MOST_FRACTION)
    if abs(float(whole) - value) > _MOST_FRACTION:
        return [_problem(f"{key} must be a whole number that fits {value_type.name}, not {value!r}", key)]
    return []


def _keys(entity: Mapping[str, str | None]) -> Mapping[str, QuotaValueType]:
    return IP_QUOTA_KEYS if IP in entity else CLIENT_QUOTA_KEYS


def _fraction(value: float) -> float:
    return abs(math.fmod(value, 1.0))


def _problem(message: str, key: str | None = None) -> QuotaProblem:
    return QuotaProblem(message=message, key=key)


def _shown(text: str) -> str:
    return repr(text[:60])
