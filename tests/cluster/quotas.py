"""Setting quotas on a real cluster, and taking them all away again."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from quotascope.clients import Connection, QuotaChange, open_quota_admin

Rule: TypeAlias = tuple[Mapping[str, str | None], Mapping[str, float]]
"""An entity (`{"user": "alice", "client-id": None}`, None for the default) and its quotas by key."""


class Quotas:
    def __init__(self, connection: Connection) -> None:
        self._admin = open_quota_admin(connection)

    def set(self, *rules: Rule) -> None:
        """Set quotas, on top of those that are set already; the broker applies them within milliseconds."""
        self._admin.alter_quotas(
            [QuotaChange(entity=entity, key=key, value=value) for entity, keys in rules for key, value in keys.items()]
        )

    def remove(self, *rules: Rule) -> None:
        self._admin.alter_quotas(
            [QuotaChange(entity=entity, key=key, value=None) for entity, keys in rules for key in keys]
        )

    def clear(self) -> None:
        configured = self._admin.describe_quotas()
        self._admin.alter_quotas([QuotaChange(entity=quota.entity, key=quota.key, value=None) for quota in configured])

    def are(self, *rules: Rule) -> bool:
        configured = [(quota.entity, {quota.key: quota.value}) for quota in self._admin.describe_quotas()]
        return _single(*configured) == _single(*rules)

    def close(self) -> None:
        self._admin.close()


def _single(*rules: Rule) -> Sequence[tuple[str, str, float]]:
    """Return each quota by itself."""
    return sorted((str(dict(entity)), key, value) for entity, keys in rules for key, value in keys.items())
