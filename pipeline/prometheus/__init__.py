"""Answers from the samples that a Prometheus server has of the past: limits, usage, episodes, and a back-test."""
