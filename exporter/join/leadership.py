"""Which node is the active controller."""

from __future__ import annotations

from collections.abc import Mapping


def active_controllers(
    told: Mapping[str, bool | None], leader: str | None
) -> dict[str, bool | None]:
    """
    Which nodes lead the KRaft quorum; None where nothing tells.

    A former leader keeps its mutation beans for an hour, and a broker has some of its own from
    auto-created topics; only the leader's describe the quota. What a node says of itself
    (``ActiveControllerCount``) is fresher than what the Admin API said at the last refresh. During
    an election two nodes may both think they lead, and both count.

    Args:
        told: What each node says of itself, None when it says nothing.
        leader: Node id of the leader according to the Admin API, None when unknown.

    """
    someone_leads = any(told.values())
    return {
        node_id: says if says is not None else _guess(node_id, leader, someone_leads)
        for node_id, says in told.items()
    }


def _guess(node_id: str, leader: str | None, someone_leads: bool) -> bool | None:  # noqa: FBT001
    if someone_leads:
        return False
    return None if leader is None else node_id == leader
