"""Jolokia agents, version 1 and 2."""
