"""The quotas that the demo's cluster is configured with: each of Kafka's eight levels applies to some client."""

from typing import Final

from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

RULES: Final[dict[QuotaType, dict[QuotaEntity, float]]] = {
    QuotaType.PRODUCE: {
        QuotaEntity("etl", "spark-nightly"): 2_000_000.0,
        QuotaEntity("etl", DEFAULT): 800_000.0,
        QuotaEntity("orders", None): 1_000_000.0,
        QuotaEntity(DEFAULT, None): 500_000.0,
    },
    QuotaType.FETCH: {
        QuotaEntity(DEFAULT, "notebook"): 250_000.0,
        QuotaEntity(None, "dashboard"): 1_000_000.0,
    },
    QuotaType.REQUEST: {
        QuotaEntity(DEFAULT, DEFAULT): 20.0,
    },
    QuotaType.CONTROLLER_MUTATION: {
        QuotaEntity("deploy", None): 1.0,
        QuotaEntity(None, DEFAULT): 2.0,
    },
}
"""Bounds in Kafka's units: bytes/s, bytes/s, percent of one thread, partitions/s."""
