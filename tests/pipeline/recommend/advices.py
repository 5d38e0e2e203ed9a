"""Recommendations, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.pipeline.recommend.advice import Advice, Hit, Recommendation
from quotascope.pipeline.recommend.coverage import Coverage, Logged
from quotascope.pipeline.recommend.policy import Policy
from quotascope.pipeline.releases import Followed
from quotascope.quotas import QuotaSet

MONDAY = 1_795_392_000_000


def recommendation(
    user: str | None = "alice",
    client_id: str | None = None,
    kind: QuotaType = QuotaType.PRODUCE,
    limit: float = 119_000.0,
) -> Recommendation:
    """A limit that the evening of a Sunday decides."""
    return Recommendation(
        entity=QuotaEntity(user, client_id),
        kind=kind,
        limit=limit,
        lowest=limit / 1.2,
        broker="1",
        hour=163,
        requests=1_234,
    )


def hit(user: str = "alice", client_id: str = "app1") -> Hit:
    """A client that would be throttled for nine seconds."""
    return Hit(
        user=user,
        client_id=client_id,
        kind=QuotaType.PRODUCE,
        limit=50_000.0,
        share=0.19,
        muted_ms=9_000,
        longest_ms=1_530,
        muted_now_ms=0,
    )


WEEK = Coverage(
    span_ms=(MONDAY, MONDAY + 7 * 86_400_000),
    hours_of_week=168,
    clock_hours=168,
    logged=Logged(20_000, 0),
    entities={QuotaEntity(user): Logged(10_000, 0) for user in ("alice", "carol")},
)
"""A week in which no client was throttled."""


def advice(
    limits: Sequence[Recommendation],
    quotas_now: QuotaSet | None = None,
    hits: Sequence[Hit] = (),
    source: str = "usage",
    coverage: Coverage = WEEK,
) -> Advice:
    return Advice(
        source=source,
        coverage=coverage,
        policy=Policy(),
        kafka=Followed(),
        configured=quotas_now,
        recommended=limits,
        hits=hits,
    )
