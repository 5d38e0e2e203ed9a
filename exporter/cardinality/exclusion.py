"""Who may be shown at all."""

from __future__ import annotations

from ..config import CardinalityConfig
from .dimension import Dimension
from .identity import AWAY_SECONDS, Name
from .lasting import Lasting
from .overflow import reserved


class Exclusion:
    """Judges names by the configured patterns, each name once while it is there."""

    def __init__(self, config: CardinalityConfig) -> None:
        self._users = Dimension(config.include_users, config.exclude_users)
        self._client_ids = Dimension(
            config.include_client_ids, config.exclude_client_ids
        )
        self._known: Lasting[Name, bool] = Lasting(AWAY_SECONDS)

    def __bool__(self) -> bool:
        return bool(self._users or self._client_ids)

    def forget(self, at: float) -> None:
        """Drop names that are gone."""
        self._known.forget(at)

    def allows(self, name: Name) -> bool:
        """Whether an entity of this name is shown one by one; one called as the fold never is."""
        if reserved(name):
            return False
        if not self:
            return True
        allowed = self._known.get(name)
        if allowed is None:
            allowed = self._users.allows(name[0]) and self._client_ids.allows(name[1])
            self._known.set(name, allowed)
        return allowed
