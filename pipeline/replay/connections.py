"""Which request follows which on a connection, and how long its client takes in between: what the closed loop replays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiled import Codes, Floats, Ints
from .frame import Frame
from .plan import ReplayPlan
from .rate import LONG_MAX


class Connections(NamedTuple):
    """Which request follows which, and when."""

    heads: Codes
    """The first request of each connection; negative for none."""
    followers: Codes
    """By request: the next one of its connection, negative for none."""
    thinks: Ints
    """By request: ms until the client sends the next one, if it is not muted."""
    groups: Codes
    """By connection: the first connection of the next group; groups share no sensor."""
    reactions: Ints
    """By connection: ms from the end of a mute to the next decision, at least 1."""
    ends: Ints
    """By connection: when it stops sending, epoch ms."""
    networks: Floats
    """By request: thread time in percent-seconds that is charged, unchecked, after the response."""
    network_waits: Ints
    """By request: how long after the decision that is, ms."""


def connections_of(plan: ReplayPlan) -> Connections:
    """The connections of a frame, as their log shows them: requests that it shows as answered empty or refused are left out, since their retries are in the log."""
    frame, requests = plan.frame, plan.frame.requests
    order = np.argsort(requests.connections, kind="stable")
    heads, followers = _chains(frame, order)
    # by request: how long its connection's client had been busy or thinking until then, ms, mutes left out
    steps = np.diff(requests.times[order], prepend=0)
    mutes = np.maximum(0, np.r_[0, frame.throttles[order][:-1]])
    clock = np.zeros(len(order), np.int64)
    clock[order] = np.cumsum(np.maximum(0, steps - mutes))
    thinks = np.zeros(len(requests.times), np.int64)
    known = np.flatnonzero(followers >= 0)
    thinks[known] = clock[followers[known]] - clock[known]
    pair_of = np.zeros(frame.connections, np.int64)
    pair_of[requests.connections] = requests.pairs
    # Neither other candidates nor other entities of a limit move the end of an entity's replay.
    last = np.full(frame.pairs, -LONG_MAX, np.int64)
    np.maximum.at(last, requests.pairs, requests.times)
    group_of = np.zeros(frame.connections, np.int64)
    group_of[requests.connections] = frame.groups
    lengths = np.unique(group_of, return_counts=True)[1]
    return Connections(
        heads=heads,
        followers=followers,
        thinks=thinks,
        groups=np.repeat(np.cumsum(lengths), lengths).astype(np.int32),
        reactions=_reactions(frame, order),
        ends=last[pair_of] + plan.settings.drain_ms,
        networks=frame.networks,
        network_waits=np.maximum(0, frame.completed - requests.times),
    )


def _chains(frame: Frame, order: Ints) -> tuple[Codes, Codes]:
    """The heads and followers of the connections."""
    requests, connections = frame.requests, frame.requests.connections
    sent = order[(requests.as_logged[order] == 0) | (frame.charged[order] > 0)]
    heads = np.full(frame.connections, -1, np.int32)
    followers = np.full(len(connections), -1, np.int32)
    if len(sent):
        first = np.r_[True, connections[sent[1:]] != connections[sent[:-1]]]
        heads[connections[sent[first]]] = sent[first]
        later = np.flatnonzero(~first)
        followers[sent[later - 1]] = sent[later]
    return heads, followers


def _reactions(frame: Frame, order: Ints) -> Ints:
    """By connection: the shortest time that was left of a gap after a reported throttle, ms; 1 where the log shows none."""
    times, connections = frame.requests.times, frame.requests.connections
    before, after = order[:-1], order[1:]
    left = times[after] - times[before] - frame.throttles[before]
    same = connections[before] == connections[after]
    known = same & (frame.throttles[before] > 0) & (left > 0)
    shortest = np.full(frame.connections, LONG_MAX, np.int64)
    np.minimum.at(shortest, connections[before[known]], left[known])
    reactions: Ints = np.where(shortest == LONG_MAX, 1, shortest)
    return reactions
