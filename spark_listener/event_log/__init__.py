"""Reads the event logs of finished and of running applications."""
