"""
The replay beside reality: does it say what a broker said.

A request log names each throttle that a real broker imposed. Here the same requests go through the quota managers of `metrics` under the
same rules, and the two are compared: `check(log, rules)`, or `make replay-check LOG=… QUOTAS=…`. docs/whatif.md has the errors that were
found, and what the log leaves out.
"""

from .check import Check, check
from .comparison import Total
from .log import RequestLog, log_of, read_log
from .rules import Rules, read_rules, rules_of_text

__all__ = [
    "Check",
    "RequestLog",
    "Rules",
    "Total",
    "check",
    "log_of",
    "read_log",
    "read_rules",
    "rules_of_text",
]
