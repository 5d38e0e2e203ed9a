"""Identifiers of the dashboards in Grafana, which links lead to."""

from typing import Final

OVERVIEW: Final = "quotascope-overview"
ENTITY: Final = "quotascope-entity"
TEAMS: Final = "quotascope-teams"
MUTATIONS: Final = "quotascope-mutations"
BROKERS: Final = "quotascope-brokers"
SHADOW: Final = "quotascope-shadow"
SPARK: Final = "quotascope-spark"
EXPORTER: Final = "quotascope-exporter"
