"""
What runs in a job's tasks: counts throttle times there and carries them home.

`throttle_scope()` gives the account of the running task; the clients of `quotascope.clients.accounting` count in it. This package
and that one work on Python 3.8 with nothing else of ours: `py_files` makes a zip of them.
"""

from .throttles import Throttles, throttle_scope

__all__ = ["Throttles", "throttle_scope"]
