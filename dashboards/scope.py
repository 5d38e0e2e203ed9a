"""Which series a dashboard looks at: those of the chosen clusters."""

from __future__ import annotations

from dataclasses import dataclass, field

from quotascope.alerts import Site
from quotascope.alerts.promql import above, aggregate, but_not, grouped, operation, select, series
from quotascope.alerts.recorded import ENTITY_OWNER
from quotascope.metrics.catalog import SOURCE_UP, Family

RATE_INTERVAL = "$__rate_interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Makes expressions that keep to the chosen clusters, and keep the cluster's label."""

    site: Site = field(default_factory=Site)
    recorded: bool = False
    """Whether figures of all entities come from our recording rules: needed beyond some thousand entities."""

    by_owner: bool = False
    """Whether viewers choose owners of entities: a dashboard with the variable of `owner`."""

    @property
    def cluster(self) -> str:
        """The label that separates clusters."""
        return self.site.cluster_label

    @property
    def chosen(self) -> str:
        """
        The matcher of the chosen clusters.

        >>> Scope().chosen
        'cluster=~"$cluster"'
        """
        return f'{self.cluster}=~"$cluster"'

    def of(self, family: Family, *matchers: str, window: str = "") -> str:
        """
        The series of a family in the chosen clusters.

        >>> from quotascope.metrics.catalog import RULES
        >>> Scope().of(RULES)
        'kafka_quota_rules{cluster=~"$cluster"}'
        """
        return select(family, self.chosen, *matchers, window=window, extra=self.cluster)

    def recorded_of(self, name: str, *matchers: str) -> str:
        """The recorded series of that name in the chosen clusters."""
        return series(name, self.chosen, *matchers)

    def keys(self, *labels: str) -> tuple[str, ...]:
        """Labels to aggregate by or to match on: the cluster's and these."""
        return (self.cluster, *labels)

    def of_owners(self, expression: str) -> str:
        """
        Of a dashboard with owners, only entities of the chosen ones. Without configured owners nothing is left out.

        >>> print(Scope(by_owner=True).of_owners("up"))
        (
          (up)
          unless on (cluster, user, client_id)
          (entity:kafka_quota_owner:info{cluster=~"$cluster",owner!~`${owner:regex}`})
        )
        """
        if not self.by_owner:
            return expression
        others = self.recorded_of(ENTITY_OWNER, "owner!~`${owner:regex}`")
        return grouped(but_not(expression, others, self.keys("user", "client_id")))

    def by(self, operator: str, expression: str, *labels: str) -> str:
        """
        One series for each cluster and combination of some labels.

        >>> Scope().by("max", "up", "broker")
        'max by (cluster, broker) (up)'
        """
        return aggregate(operator, self.keys(*labels), expression)

    def or_zero(self, expression: str, *labels: str, known: str = "") -> str:
        """
        One number for each cluster and combination of some labels, 0 when there is none: but only where it is known.

        That is where ``known`` has such a series, by default where a source can be read. Elsewhere the number is unknown,
        which must not look like a green 0.

        >>> Scope().or_zero("up > 1", known="up")
        '(up > 1) or 0 * max by (cluster) (up)'
        """
        known = self.by("max", known or above(self.of(SOURCE_UP), 0), *labels)
        return operation(grouped(expression), "or", f"0 * {known}")
