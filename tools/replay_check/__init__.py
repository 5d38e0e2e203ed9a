"""
Comparison of a replay with the throttles that a real broker imposed.

A request log has the throttle time of every request. Here the same requests are charged to the quota managers of
`metrics` under the same rules, and both are compared: `check(log, rules)`, or `make replay-check LOG=… QUOTAS=…`.
docs/guides/whatif.md has the measured errors, and the facts that a log leaves out.
"""

from .check import Check, Total, check
from .log import RequestLog, log_of, read_log
from .rules import RulesInForce, read_rules, rules_of_text

__all__ = [
    "Check",
    "RequestLog",
    "RulesInForce",
    "Total",
    "check",
    "log_of",
    "read_log",
    "read_rules",
    "rules_of_text",
]
