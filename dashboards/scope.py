"""The series of a dashboard: those of the chosen clusters."""

from __future__ import annotations

from dataclasses import dataclass, field

from quotascope.alerts import Site
from quotascope.metrics.catalog import SOURCE_UP, Family

from .promql import above, aggregate, but_not, grouped, operation, select, series
from .recorded import ENTITY_TEAM

RATE_INTERVAL = "$__rate_interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A builder of expressions that select the chosen clusters and keep the cluster's label."""

    site: Site = field(default_factory=Site)
    recorded: bool = False
    """True if figures of all entities come from recording rules, which thousands of entities need."""

    by_team: bool = False
    """True if viewers choose teams of entities: the dashboard has the variable `team`."""

    @property
    def cluster(self) -> str:
        """Label that separates clusters."""
        return self.site.cluster_label

    @property
    def chosen(self) -> str:
        """
        Matcher of the chosen clusters.

        >>> Scope().chosen
        'cluster=~"$cluster"'
        """
        return f'{self.cluster}=~"$cluster"'

    def of(self, family: Family, *matchers: str, window: str = "") -> str:
        """
        Return the series of a family in the chosen clusters.

        >>> from quotascope.metrics.catalog import RULES
        >>> Scope().of(RULES)
        'kafka_quota_rules{cluster=~"$cluster"}'
        """
        return select(family, self.chosen, *matchers, window=window, extra=self.cluster)

    def recorded_of(self, name: str, *matchers: str) -> str:
        """Return the recorded series of a name in the chosen clusters."""
        return series(name, self.chosen, *matchers)

    def keys(self, *labels: str) -> tuple[str, ...]:
        """Return the labels to aggregate by or to match on: the cluster's and the given ones."""
        return (self.cluster, *labels)

    def of_teams(self, expression: str) -> str:
        """
        Return an expression for entities of the chosen teams, on a dashboard with teams; all if none are configured.

        >>> print(Scope(by_team=True).of_teams("up"))
        (
          (up)
          unless on (cluster, user, client_id)
          (entity:kafka_quota_team:info{cluster=~"$cluster",team!~`${team:regex}`})
        )
        """
        if not self.by_team:
            return expression
        excluded = self.recorded_of(ENTITY_TEAM, "team!~`${team:regex}`")
        return grouped(but_not(expression, excluded, self.keys("user", "client_id")))

    def by(self, operator: str, expression: str, *labels: str) -> str:
        """
        Return one series for each cluster and combination of some labels.

        >>> Scope().by("max", "up", "broker")
        'max by (cluster, broker) (up)'
        """
        return aggregate(operator, self.keys(*labels), expression)

    def or_zero(self, expression: str, *labels: str, evidence: str = "") -> str:
        """
        Return one number for each cluster and combination of some labels, or 0 where that is known.

        It is known where ``evidence`` has a series, by default where a source can be read. Elsewhere the number is
        unknown, which must not look like a green 0.

        >>> Scope().or_zero("up > 1", evidence="up")
        '(up > 1) or 0 * max by (cluster) (up)'
        """
        evidence = self.by("max", evidence or above(self.of(SOURCE_UP), 0), *labels)
        return operation(grouped(expression), "or", f"0 * {evidence}")
