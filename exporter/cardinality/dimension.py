"""What may be shown of one dimension."""

from __future__ import annotations

from collections.abc import Iterable

from ..patterns import matcher


class Dimension:
    """What may be shown of one dimension, users or client ids. Raises ``ValueError`` for a wrong pattern."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include = [matcher(pattern) for pattern in include]
        self._exclude = [matcher(pattern) for pattern in exclude]

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def allows(self, name: str) -> bool:
        """Whether this name is shown; an absent one is."""
        if not name:
            return True
        if self._include and not any(matches(name) for matches in self._include):
            return False
        return not any(matches(name) for matches in self._exclude)
