"""The options of a call, for functions that hand them on."""

from typing import TypedDict


class Options(TypedDict, total=False):
    """The fields of `RetryOptions`."""

    retry_on_quota_violation: bool
    timeout_ms: int
    retries: int
