"""The labels that aggregations keep, by what they are about."""

from __future__ import annotations

from dataclasses import dataclass

from .links import Site


@dataclass(frozen=True, slots=True)
class Levels:
    """The label sets of a site; each begins with the cluster's label."""

    site: Site

    def of(self, *labels: str) -> tuple[str, ...]:
        """
        These labels and the cluster's.

        >>> Levels(Site(cluster_label="kafka")).of("broker")
        ('kafka', 'broker')
        """
        return (self.site.cluster_label, *labels)

    @property
    def cluster(self) -> tuple[str, ...]:
        """One cluster."""
        return self.of()

    @property
    def broker(self) -> tuple[str, ...]:
        """One broker or controller."""
        return self.of("broker")

    @property
    def entity(self) -> tuple[str, ...]:
        """One user, client id or pair, on all brokers."""
        return self.of("user", "client_id")

    @property
    def typed(self) -> tuple[str, ...]:
        """One entity under one type of quota."""
        return self.of("quota_type", "user", "client_id")

    @property
    def exporter(self) -> tuple[str, ...]:
        """One exporter: each has its own health, even where two watch one cluster."""
        return self.of("instance")

    @property
    def query(self) -> tuple[str, ...]:
        """One streaming query, or the batch part of a Spark job."""
        return self.of("app", "query")
