"""Throttles by the quota that decides."""

from __future__ import annotations

from quotascope.metrics import catalog

from .levels import Levels
from .promql import above, both, but_not, call, grouped, operation, select


def by_deciding_quota(levels: Levels) -> str:
    """
    Those that are throttled, by broker.

    Under KRaft a broker counts as request throttle what the controller's mutation quotas impose on
    requests that it forwards; the exporter tells them apart (``kafka_quota_throttle_cause_info``),
    and here they get the ``quota_type`` of their cause.
    """
    labels = levels.of("quota_type", "broker", "user", "client_id")
    forwarded = select(
        catalog.THROTTLE_CAUSE_INFO,
        'quota_type="request"',
        'cause="controller_mutation"',
    )
    own = but_not(above(select(catalog.THROTTLE_TIME_SECONDS), 0), forwarded, labels)
    of_mutations = both(
        above(select(catalog.THROTTLE_TIME_SECONDS, 'quota_type="request"'), 0),
        forwarded,
        labels,
    )
    renamed = call(
        "label_replace",
        of_mutations,
        '"quota_type"',
        '"controller_mutation"',
        '""',
        '""',
    )
    return operation(grouped(own), "or", renamed)
