"""Draws our dashboards without a Grafana, from what a Prometheus answers; see ``__main__``."""
