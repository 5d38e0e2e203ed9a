"""Replays and recommendations as pages, as CSV and as JSON."""
