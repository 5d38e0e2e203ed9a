"""Costs of reading request logs and of replaying a history; see `cases`."""
