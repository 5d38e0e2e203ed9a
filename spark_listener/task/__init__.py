"""
The part that runs in a job's tasks: it counts throttle times there and sends them to the driver.

`throttle_scope()` gives the account of the running task; the clients of `quotascope.clients.accounting` count in it.
This package and that one work on Python 3.8 without the rest of quotascope: `py_files` makes a zip of them.
"""

from .throttles import JobThrottles, throttle_scope

__all__ = ["JobThrottles", "throttle_scope"]
