"""Names under which candidate quotas would measure what brokers have measured under others, if samples tell it."""

from __future__ import annotations

from collections.abc import Collection

from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import unnamed

Names = tuple[str, str]
"""User and client-id of an entity; empty for one that it is not measured by."""


def measured_as(table: RuleTable, names: Names, measured: Collection[Names]) -> tuple[Names | None, str]:
    """
    Return the names under which rules would measure an entity, or None and the reason why samples do not tell it.

    What brokers measured together cannot be told apart again; what they measured apart is added up, if all of it is.

    Args:
        table: rules of one quota type.
        names: the entity as brokers measured it.
        measured: all entities that they measured.

    """
    user, client_id = names
    if user and client_id:
        return _of_pair(table, names, measured)
    other = unnamed(table)
    if user:
        together = table.metric_tags(user, other) == names and not _tells_clients_apart(table, user)
        reason = "brokers measured its client-ids together, and the candidate limits them apart"
    else:
        # any rule with a user may apply to some of the users of the client-id
        together = table.metric_tags(other, client_id) == names and all(entity.user is None for entity in table)
        reason = "brokers measured its users together, and the candidate limits them apart"
    return (names, "") if together else (None, reason)


def _of_pair(table: RuleTable, names: Names, measured: Collection[Names]) -> tuple[Names | None, str]:
    tags = table.metric_tags(*names)
    if tags == names:
        return tags, ""
    place = 0 if tags[0] else 1
    of_name = [pair for pair in measured if pair[place] == tags[place]]
    if all(all(pair) and table.metric_tags(*pair) == tags for pair in of_name):
        return tags, ""
    return None, "some of its clients are measured otherwise, so that the sum is in no sample"


def _tells_clients_apart(table: RuleTable, user: str) -> bool:
    """Return whether some client-id of a user would be measured apart from the user's others."""
    clients = {entity.client_id for entity in table if isinstance(entity.client_id, str)}
    return any(table.metric_tags(user, client_id) != (user, "") for client_id in clients)
