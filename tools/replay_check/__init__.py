"""
The replay beside reality: whether it throttles as a broker did.

A request log has each throttle that a real broker imposed. Here the same requests go through the quota managers of
`metrics` under the same rules, and the two are compared: `check(log, rules)`, or `make replay-check LOG=… QUOTAS=…`.
docs/guides/whatif.md has the errors that were found, and what the log leaves out.
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
