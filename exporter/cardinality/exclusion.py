"""Names that are not shown one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from ..config import CardinalityConfig
from ..patterns import matcher
from .identity import TYPES, Identities, Name, View, reserved

ALLOWED: Final = 1
EXCLUDED: Final = 2
RESERVED: Final = 3
"""Called as the fold."""


class Exclusion:
    """Judges names by the configured patterns, each name once while it is there. Raises ``ValueError`` for a wrong pattern."""

    def __init__(self, config: CardinalityConfig) -> None:
        self._users = _allows(config.include_users, config.exclude_users)
        self._client_ids = _allows(config.include_client_ids, config.exclude_client_ids)

    def __bool__(self) -> bool:
        return self._users is not None or self._client_ids is not None

    def verdicts(self, identities: Identities, view: View) -> np.ndarray:
        """By identity: one of the verdicts above."""
        verdicts = identities.known["verdict"]
        for number in view.numbers[verdicts[view.numbers] == 0]:
            name = identities.names[number]
            own = identities.known["pool"][number] < len(TYPES)
            allowed = not own or self._allows(name)
            verdicts[number] = ALLOWED if allowed else EXCLUDED
            if reserved(name):
                verdicts[number] = RESERVED
        return verdicts[view.numbers]

    def _allows(self, name: Name) -> bool:
        """An absent part of the name is no reason to exclude it."""
        return all(
            allows is None or not part or allows(part)
            for allows, part in zip((self._users, self._client_ids), name, strict=True)
        )


def _allows(
    include: Iterable[str], exclude: Iterable[str]
) -> Callable[[str], bool] | None:
    included, excluded = (
        [matcher(pattern) for pattern in patterns] for patterns in (include, exclude)
    )
    if not included and not excluded:
        return None

    def allows(name: str) -> bool:
        if included and not any(matches(name) for matches in included):
            return False
        return not any(matches(name) for matches in excluded)

    return allows
