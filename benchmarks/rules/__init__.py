"""Costs of our rules and of our dashboards' queries for a Prometheus; see `run`."""
