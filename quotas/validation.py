"""What a KRaft controller would refuse, found before it is asked (`quotascope.metrics.validate_alteration`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quotascope.metrics import is_address, validate_alteration

_LONGEST_HOST: Final = 253
_HOST: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?"
)


def problems_of(
    entity: Mapping[str, str | None], values: Mapping[str, float | None]
) -> list[str]:
    """
    All that is wrong with quotas for an entity, as the Admin API has it; None among the values is a removal.

    Stricter than a controller in one thing: NaN, which it stores, and with which nothing is ever limited.
    """
    problems = validate_alteration(entity, values.items(), is_host=may_be_host)
    return [problem.message for problem in problems]


def may_be_host(text: str) -> bool:
    """Whether a text is an address, or could be the name of a host: only the controller's name service knows."""
    if is_address(text):
        return True
    return len(text) <= _LONGEST_HOST and _HOST.fullmatch(text) is not None
