"""Why an attempt of a task was lost."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """
    The reasons that are told apart; what the evidence does not show is not guessed.

    A program that raises an exception of its own after one of Kafka's (`raise X from error`) failed for Kafka's.
    """

    KAFKA_QUOTA = "kafka_quota"
    """A quota refused a change of the cluster: THROTTLING_QUOTA_EXCEEDED, error 89."""
    KAFKA_TIMEOUT_THROTTLED = "kafka_timeout_throttled"
    """A Kafka client gave up waiting, in an attempt that was told throttle times (it says so in its note)."""
    KAFKA_TIMEOUT = "kafka_timeout"
    """A Kafka client gave up waiting; whether a throttle was the reason is not known."""
    KAFKA_OTHER = "kafka_other"
    """Another error of a Kafka client."""
    EXECUTOR_LOST = "executor_lost"
    """The executor went away, during the attempt or with its output."""
    FETCH_FAILED = "fetch_failed"
    """The shuffle output that the attempt reads was gone."""
    PYTHON_WORKER_DIED = "python_worker_died"
    """The Python process of the attempt ended without a word: killed, out of memory, or crashed."""
    KILLED = "killed"
    """Spark was told to kill this attempt; cancelled stages and losers of a speculation are not among these."""
    OTHER = "other"
    """Anything else that the program or Spark raised."""
    UNKNOWN = "unknown"
    """Spark does not say why, or the event that does was not seen."""
