"""Agents that give Prometheus text: jmx_exporter and others, each in its dialect."""
