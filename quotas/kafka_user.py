"""
Quotas as manifests for Strimzi's User Operator: a `KafkaUser` holds the quotas of one user.

Follows Strimzi's `KafkaUserQuotas`, `KafkaUserModel` and `KafkaUserOperator`. A user of certificates is called `CN=`
and the name of its `KafkaUser`; any other user has the name of its `KafkaUser`. Other limits of Kafka have no place in
a `KafkaUser`, and are listed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX

from .quota_set import Entity, QuotaSet, number_text, shown
from .yaml_file import quoted

API_VERSION: Final = "kafka.strimzi.io/v1"
"""Version of Strimzi's API since 0.49; before that it is `kafka.strimzi.io/v1beta2`."""

FIELDS: Final = {
    key: re.sub("_(.)", lambda match: match[1].upper(), key)
    for key in (quota_type.quota_key for quota_type in QuotaType)
}
"""Quota keys, and the fields of `KafkaUserQuotas` that have them."""
WHOLE: Final = {"producer_byte_rate", "consumer_byte_rate", "request_percentage"}
"""Keys that are integers of 32 bits in a `KafkaUser`."""
CERTIFICATE: Final = "CN="
"""Beginning of the names of users with certificates."""
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
"""Names that Kubernetes accepts (RFC 1123)."""
_LONGEST_NAME: Final = 253
LONGEST_CERTIFICATE_NAME: Final = 64
_HEADER: Final = """\
# Quotas as Strimzi's User Operator keeps them. If a KafkaUser exists already, copy only spec.quotas:
# applied as a whole, these manifests would remove its authentication and its ACLs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """Manifests to apply, and quotas that Strimzi cannot express."""

    text: str
    """YAML stream with a document for each user; comments at its beginning list the quotas that are left out."""
    left_out: tuple[str, ...] = ()
    """Sentences about the quotas that are missing, with reasons."""


def kafka_users(
    quotas: QuotaSet,
    *,
    cluster: str,
    only: Collection[Entity] | None = None,
    namespace: str | None = None,
    api_version: str = API_VERSION,
) -> Manifests:
    """
    Return a `KafkaUser` for each user with quotas that it can hold.

    A user is in it wholly or not at all: the operator removes what is missing from a `KafkaUser`.

    Args:
        quotas: all of a cluster or file.
        cluster: the name of the `Kafka` resource, for the label `strimzi.io/cluster`.
        only: entities that manifests are wanted of; None for all.
        namespace: of the manifests; None leaves it to the command that applies them.
        api_version: of the manifests.

    """
    entities = [entity for entity in quotas if only is None or entity in only]
    reasons = {entity: _why_not(entity, quotas) for entity in entities}
    documents = [
        "\n".join(_manifest(entity, quotas[entity], cluster, namespace, api_version))
        for entity, reason in reasons.items()
        if reason is None and isinstance(entity, QuotaEntity)
    ]
    left_out = tuple(f"{entity}: {reason}" for entity, reason in reasons.items() if reason)
    comments = "".join(f"# left out: {sentence}\n" for sentence in left_out)
    text = "---\n".join((_HEADER + comments, *(f"{document}\n" for document in documents)))
    return Manifests(text=text, left_out=left_out)


def is_name(text: str) -> bool:
    """Return whether a resource of Kubernetes can have this name."""
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def _why_not(entity: Entity, quotas: QuotaSet) -> str | None:
    """Return the reason why no `KafkaUser` can hold the quotas of an entity, None when one can."""
    if not isinstance(entity, QuotaEntity):
        return "a KafkaUser has no quotas by address"
    if entity.client_id is not None:
        return "a KafkaUser has no quotas by client-id"
    if not isinstance(entity.user, str):
        return f"belongs in the Kafka resource, under spec.kafka.quotas: {_inline(quotas[entity])}"
    return _bad_name(entity.user, quotas) or _bad_value(quotas[entity])


def _inline(values: Mapping[str, float]) -> str:
    """Return quotas as `spec.kafka.quotas` has them, on one line."""
    pairs = (f"{FIELDS.get(key, key)}: {number_text(v)}" for key, v in values.items())
    return "{" + ", ".join(("type: kafka", *pairs)) + "}"


def _bad_name(user: str, quotas: QuotaSet) -> str | None:
    """Return the reason why no `KafkaUser` can be of a user; None if one can."""
    name = user.removeprefix(CERTIFICATE)
    if not is_name(name) or (name != user and len(name) > LONGEST_CERTIFICATE_NAME):
        return "no KafkaUser can have this name"
    twin = f"{CERTIFICATE}{name}" if name == user else name
    if QuotaEntity(twin) in quotas:
        return f"the KafkaUser {name} can have the quotas of this user or of {shown(twin)}, not both"
    return None


def _bad_value(values: Mapping[str, float]) -> str | None:
    """Return the reason why a `KafkaUser` cannot hold some quotas; None if it can."""
    for key, value in values.items():
        if key not in FIELDS:
            return f"a KafkaUser has no {key}"
        if not 0 < value < inf:
            return f"{FIELDS[key]} must be above 0 and finite, not {number_text(value)}"
        if key in WHOLE and (value != int(value) or value > INT_MAX):
            return f"{FIELDS[key]} must be a whole number up to {INT_MAX}, not {number_text(value)}"
    return None


def _manifest(
    entity: QuotaEntity, values: Mapping[str, float], cluster: str, namespace: str | None, api_version: str
) -> Iterator[str]:
    """Yield the lines of a user's manifest."""
    user = str(entity.user)
    name = user.removeprefix(CERTIFICATE)
    yield f"apiVersion: {quoted(api_version)}"
    yield "kind: KafkaUser"
    yield "metadata:"
    yield f"  name: {quoted(name)}"
    if namespace is not None:
        yield f"  namespace: {quoted(namespace)}"
    yield "  labels:"
    yield f"    strimzi.io/cluster: {quoted(cluster)}"
    yield "spec:"
    if name != user:  # else its user would have the name without CN=
        yield "  authentication:"
        yield "    type: tls-external"
    yield "  quotas:"
    for key, field in FIELDS.items():
        if key in values:
            yield f"    {field}: {number_text(values[key])}"
