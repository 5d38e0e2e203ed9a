"""Names under which candidate quotas would measure what brokers have measured under others, if samples tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias

from quotascope.metrics.kafka.entities import DEFAULT, DefaultType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import unnamed

Names: TypeAlias = tuple[str, str]
"""User and client-id of an entity; empty for one that it is not measured by."""
Name: TypeAlias = str | DefaultType | None


class TagsOf:
    """
    The names under which the rules of one quota type would measure what brokers have measured.

    What brokers measured together cannot be told apart again; what they measured apart is added up, if all of it is.

    Args:
        table: rules of the quota type.
        measured: all entities that brokers measured.

    """

    def __init__(self, table: RuleTable, measured: Iterable[Names]) -> None:
        self._table = table
        self._by_name: dict[tuple[int, str], list[Names]] = defaultdict(list)
        """Measured entities by the place and the value of a name."""
        for names in measured:
            for place, name in enumerate(names):
                if name:
                    self._by_name[place, name].append(names)
        self._other = unnamed(table)
        self._has_users = any(entity.user is not None for entity in table)
        self._clients: dict[Name, list[str]] = defaultdict(list)
        """Client-ids of the rules by their user; for users without rules of their own, one of a list stands for all."""
        for entity in table:
            if isinstance(entity.client_id, str):
                self._clients[entity.user].append(entity.client_id)
        self._is_whole: dict[Names, bool] = {}
        """Sums that were looked at, with whether all that they consist of was measured apart."""

    def names(self, names: Names) -> tuple[Names | None, str]:
        """Return the names for an entity as brokers measured it, or None and the reason why samples do not tell it."""
        table, (user, client_id) = self._table, names
        if user and client_id:
            return self._of_pair(names)
        if user:
            together = table.metric_tags(user, self._other) == names and not self._tells_clients_apart(user)
            reason = "brokers measured its client-ids together, and the candidate limits them apart"
        else:
            # any rule with a user may apply to some of the users of the client-id
            together = table.metric_tags(self._other, client_id) == names and not self._has_users
            reason = "brokers measured its users together, and the candidate limits them apart"
        return (names, "") if together else (None, reason)

    def _of_pair(self, names: Names) -> tuple[Names | None, str]:
        tags = self._table.metric_tags(*names)
        if tags == names:
            return tags, ""
        whole = self._is_whole.get(tags)
        if whole is None:
            place = 0 if tags[0] else 1
            of_name = self._by_name[place, tags[place]]
            whole = all(all(pair) and self._table.metric_tags(*pair) == tags for pair in of_name)
            self._is_whole[tags] = whole
        reason = "some of its clients are measured otherwise, so that the sum is in no sample"
        return (tags, "") if whole else (None, reason)

    def _tells_clients_apart(self, user: str) -> bool:
        """Return whether some client-id of a user would be measured apart from the user's others."""
        of_others = (self._clients.get(name, [])[:1] for name in (DEFAULT, None))
        clients = chain(self._clients.get(user, ()), *of_others)
        return any(self._table.metric_tags(user, client_id) != (user, "") for client_id in clients)
