"""Answers from a real Prometheus beside those from the request log of the same broker."""
