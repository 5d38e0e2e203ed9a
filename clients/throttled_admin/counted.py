"""Counting of the requests that `mutate` repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from quotascope.metrics.kafka.protocol import ErrorCode

from ..accounting import ClientAccount
from ..throttling import ApiError, MutationAnswer
from ..throttling.mutation import K

Send: TypeAlias = Callable[[tuple[K, ...], int], MutationAnswer[K]]
"""Function that `mutate` calls: it sends a request for some topics with a timeout in ms."""


def counted(send: Send[K], client: ClientAccount) -> Send[K]:
    """
    Return `send` with counting.

    A request after a refusal is a retry, a request repeated for another reason is not.
    """
    refused = False

    def sending(keys: tuple[K, ...], timeout_ms: int) -> MutationAnswer[K]:
        nonlocal refused
        if refused:
            client.retried()
            refused = False
        answer = send(keys, timeout_ms)
        refused = any_refused(answer.results)
        return answer

    return sending


def any_refused(results: Mapping[K, ApiError | None]) -> bool:
    """Return whether a quota refused any of the topics."""
    codes = (error.code for error in results.values() if error is not None)
    return ErrorCode.THROTTLING_QUOTA_EXCEEDED in codes
