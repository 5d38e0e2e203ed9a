"""
Kinds of removals of executors, from the "Removed Reason" of a SparkListenerExecutorRemoved.

Spark has no code for it, only the text of an `ExecutorLossReason`. Since Spark 3.1,
CoarseGrainedSchedulerBackend.removeExecutor reports that the driver killed or decommissioned the executor, whatever the
cluster manager says of it. Before, it reports the manager's text, which may be the same for an executor that dynamic
allocation gave back and for one that was lost.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class Removal(StrEnum):
    """Kinds of removals."""

    GIVEN_BACK = "given_back"
    """The driver gave it back, or had it end: dynamic allocation, decommissioning, an exit without an error."""
    LOST = "lost"
    """The executor ended without a request of the driver: a crash, a kill, preemption, a lost node."""
    UNCLEAR = "unclear"
    """Spark before 3.1 reports both so; a loss in any later version."""


_GIVEN_BACK: Final = (
    re.compile(r"Executor killed by driver\b"),  # ExecutorKilled, since 1.6
    re.compile(r"Executor decommission\b"),  # ExecutorDecommission, since 3.1
    re.compile(r"Finished decommissioning\b"),  # CoarseGrainedExecutorBackend, since 3.4
    # YarnAllocator, since 1.6, of containers that it released itself; KubernetesClusterSchedulerBackend of 2.3 of pods
    re.compile(r"Container .{1,500} exited from explicit termination request\b"),
    # YarnAllocator: ContainerExitStatus KILLED_BY_APPMASTER and KILLED_AFTER_APP_COMPLETION; ABORTED (-100) if the
    # application released it
    re.compile(r"Container .{1,1000} Exit status: (?:-105|-107)\b", re.DOTALL),
    re.compile(r"Container .{1,1000} Exit status: -100\. Diagnostics: Container released by application", re.DOTALL),
    re.compile(
        r"Command exited with code 0$"
    ),  # ExecutorRunner of a standalone worker; its Master counts these as normal, too
    # ExecutorPodsLifecycleManager, which explains the code since 3.1
    re.compile(r"\s*The executor with id \d+ exited with exit code 0(?:\(success\))?(?:\.|\s|$)"),
    re.compile(r"Executor finished with state (?:FINISHED|KILLED)\b"),  # MesosCoarseGrainedSchedulerBackend, until 3.x
)
_UNCLEAR: Final = (
    re.compile(r"$"),  # StandaloneAppClient, for an executor that a worker was told to kill
    re.compile(r"[Rr]emote (?:Rpc|RPC|Akka) client disassociated"),  # the connection ends, for whatever reason
    re.compile(r"Command exited with code 143$"),  # SIGTERM: a standalone worker kills so, and so do others
    # ExecutorPodsLifecycleManager of 2.4 and 3.0: the driver deletes pods that it gives back
    re.compile(r"The executor with id \d+ was deleted by a user or the framework\b"),
)


def removal_of(reason: str) -> Removal:
    """Return the kind of removal that a "Removed Reason", or the "Loss Reason" of an ExecutorLostFailure, reports."""
    if any(pattern.match(reason) for pattern in _GIVEN_BACK):
        return Removal.GIVEN_BACK
    if any(pattern.match(reason) for pattern in _UNCLEAR):
        return Removal.UNCLEAR
    return Removal.LOST
