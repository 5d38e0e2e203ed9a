"""Request logs of real brokers, replayed once."""

from functools import cache
from pathlib import Path

from tools.replay_check import Check, check, read_log, read_rules

CAPTURES = Path(__file__).parents[1] / "pipeline" / "captures"
NAMES = ("kafka-4.3.1", "kafka-4.3.1-second", "kafka-4.4.0")


def log_path(name: str) -> Path:
    return CAPTURES / f"{name}-request.log.gz"


def rules_path(name: str) -> Path:
    """The rules that were in force."""
    return CAPTURES / f"{name}-quotas.yaml"


@cache
def checked(name: str) -> Check:
    return check(read_log(log_path(name)), read_rules(rules_path(name)))
