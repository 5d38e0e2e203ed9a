"""How often a change of a table is tried when other processes commit first."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from ..errors import LostCommit

ATTEMPTS: Final = 20
"""As many writers at once can each commit before the slowest of them gives up."""

Result = TypeVar("Result")


def retried(attempt: Callable[[], Result]) -> Result:
    """
    Make an attempt, again while another process commits first.

    Args:
        attempt: reads what the table holds each time: the commit that it lost to may have added the same rows.

    Raises:
        LostCommit: of the last of `ATTEMPTS` attempts.

    """
    for _ in range(ATTEMPTS - 1):
        with suppress(LostCommit):
            return attempt()
    return attempt()
