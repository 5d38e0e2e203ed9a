"""A cluster whose answers are scripted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tests.exporter.limits.scripted import ScriptedAdmin
from tests.exporter.recorded import SPLIT_RULES

from quotascope.clients.errors import PermissionMissing
from quotascope.clients.quota_admin import ConfiguredQuota, QuotaChange
from quotascope.clients.security import Connection
from quotascope.quotas import to_admin


class Cluster(ScriptedAdmin):
    """The quotas that were in force when the captures were taken, and what a story has made of them."""

    altered: ClassVar[dict[tuple[str, ...], tuple[ConfiguredQuota, ...]]] = {}
    """By the servers that were asked, until the story ends."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.brokers = [1]
        self._servers = tuple(connection.bootstrap_servers)
        self.quotas = tuple(
            ConfiguredQuota(entity=to_admin(entity), key=kind.quota_key, value=bound)
            for kind, rules in SPLIT_RULES.items()
            for entity, bound in rules.items()
        )
        if self._servers == ("guarded:9092",):
            missing = PermissionMissing(
                request="DescribeClientQuotas", operation="DescribeConfigs", username="me", servers=self._servers
            )
            self.errors["quotas"] = missing
        if self._servers == ("empty:9092",):
            self.quotas = ()
        self.quotas = self.altered.get(self._servers, self.quotas)

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """Store quotas as a controller does, for the next command."""
        quotas = {(_key(quota.entity), quota.key): quota for quota in self.quotas}
        for change in changes:
            place = _key(change.entity), change.key
            quotas.pop(place, None)
            if change.value is not None:
                quotas[place] = ConfiguredQuota(entity=change.entity, key=change.key, value=change.value)
        self.quotas = self.altered[self._servers] = tuple(quotas.values())


def _key(entity: Mapping[str, str | None]) -> frozenset[tuple[str, str | None]]:
    return frozenset(entity.items())
