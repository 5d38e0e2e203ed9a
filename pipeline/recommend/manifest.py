"""The recommended limits as Strimzi keeps quotas."""

from __future__ import annotations

import math
from typing import Final

from quotascope.metrics import QuotaType
from quotascope.quotas import Manifests, QuotaSet, kafka_users

from .advice import Advice

_REQUEST: Final = QuotaType.REQUEST.quota_key


def manifests(advice: Advice, cluster: str, namespace: str | None = None) -> Manifests:
    """
    A `KafkaUser` for each user whose quotas change, with all of its quotas.

    Percentages of request time are rounded up: there they are whole numbers.
    """
    changed = {change.entity for change in advice.changes}
    whole = {
        entity: {key: _whole(key, value) for key, value in values.items()}
        for entity, values in advice.target.items()
    }
    return kafka_users(
        QuotaSet(whole), cluster=cluster, only=changed, namespace=namespace
    )


def _whole(key: str, value: float) -> float:
    return float(math.ceil(value)) if key == _REQUEST else value
