"""Reads brokers, joins usage with limits, and serves the result to Prometheus and to people."""
