"""Requests whose thread time no client is charged for."""

from typing import Final

EXEMPT_APIS: Final = (
    4,  # LeaderAndIsr
    5,  # StopReplica
    6,  # UpdateMetadata
    7,  # ControlledShutdown
    27,  # WriteTxnMarkers
    52,  # Vote
    53,  # BeginQuorumEpoch
    54,  # EndQuorumEpoch
    56,  # AlterPartition
    59,  # FetchSnapshot
    82,  # UpdateRaftVoter
)
"""
Kafka's numbers of the APIs that every node answers with `sendResponseExemptThrottle`: what brokers and controllers say to each other.

The first four went with ZooKeeper. A follower's Fetch is exempt as well. What the log does not show is taken for the usual case: an exempt
request that was refused for want of permission is charged by Kafka, and the thread time of a Produce with `acks=0` is not.
"""

EXEMPT_ON_CONTROLLERS: Final = (
    55,  # DescribeQuorum
    80,  # AddRaftVoter
    81,  # RemoveRaftVoter
)
"""
APIs that a controller answers exempt, and a broker forwards to it and charges its client for.

Clients ask brokers, so that a line is the broker's unless it is one that a broker forwarded.
"""
