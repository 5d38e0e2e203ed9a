"""Names under which candidate quotas would measure entities that brokers measured under other names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias

from quotascope.metrics.kafka.entities import DEFAULT, DefaultType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import unnamed

Names: TypeAlias = tuple[str, str]
"""User and client-id of an entity; a name is empty if the broker measures without it."""
Name: TypeAlias = str | DefaultType | None


class TagsOf:
    """
    The names under which the rules of one quota type would measure the entities that brokers measured.

    Entities that brokers measured together cannot be told apart again. Entities that they measured apart can be added
    up, if samples have all of them.

    Args:
        table: rules of the quota type.
        measured: all entities that brokers measured.

    """

    def __init__(self, table: RuleTable, measured: Iterable[Names]) -> None:
        self._table = table
        self._by_name: dict[tuple[int, str], list[Names]] = defaultdict(list)
        """Measured entities by the value of a name, and its index in `Names`."""
        for names in measured:
            for place, name in enumerate(names):
                if name:
                    self._by_name[place, name].append(names)
        self._other = unnamed(table)
        self._has_users = any(entity.user is not None for entity in table)
        self._clients: dict[Name, list[str]] = defaultdict(list)
        """Client-ids of the rules by the rules' user."""
        for entity in table:
            if isinstance(entity.client_id, str):
                self._clients[entity.user].append(entity.client_id)
        self._is_whole: dict[Names, bool] = {}
        """True if samples have all parts of a sum, by the names of the sum; a cache."""

    def names(self, names: Names) -> tuple[Names | None, str]:
        """
        Return the names under which the rules would measure an entity that brokers measured.

        The second value is empty. If samples do not show what the rules would measure, return None and the reason.
        """
        table, (user, client_id) = self._table, names
        if user and client_id:
            return self._names_of_pair(names)
        if user:
            stays_one = table.metric_tags(user, self._other) == names and not self._tells_clients_apart(user)
            reason = "brokers measured its client-ids together, and the candidate limits them apart"
        else:
            # any rule with a user may apply to some of the users of the client-id
            stays_one = table.metric_tags(self._other, client_id) == names and not self._has_users
            reason = "brokers measured its users together, and the candidate limits them apart"
        return (names, "") if stays_one else (None, reason)

    def _names_of_pair(self, names: Names) -> tuple[Names | None, str]:
        """Return what `names` returns, for an entity that brokers measured by user and client-id."""
        tags = self._table.metric_tags(*names)
        if tags == names:
            return tags, ""
        if tags not in self._is_whole:
            # the sum has a user or a client-id; its parts are the measured entities with that name
            place = 0 if tags[0] else 1
            parts = self._by_name[place, tags[place]]
            self._is_whole[tags] = all(all(part) and self._table.metric_tags(*part) == tags for part in parts)
        reason = "some of its clients are measured otherwise, so that the sum is in no sample"
        return (tags, "") if self._is_whole[tags] else (None, reason)

    def _tells_clients_apart(self, user: str) -> bool:
        """Return whether the rules would measure some client-id of a user apart from the user's other client-ids."""
        # of the rules for other users and for all users, one client-id stands for the others
        any_user = (self._clients.get(name, [])[:1] for name in (DEFAULT, None))
        clients = chain(self._clients.get(user, ()), *any_user)
        return any(self._table.metric_tags(user, client_id) != (user, "") for client_id in clients)
