"""A snapshot as `print` shows it."""

from __future__ import annotations

from dataclasses import replace

from tests.spark_listener.exposition.jobs import hostile, job

from quotascope.clients.accounting import Client, ClientTotals

PRINTED = """\
nightly
Throttled at least 2.50 s (clients of Python; 2 attempts ended without a report)
query   user   client id  side   throttled  responses  longest  quota retries
        alice  app1       read      1.50 s          6      1 s              0
clicks  alice  app1       read      0.75 s          3   0.25 s              0
        alice  topics     admin     0.25 s          1   0.25 s              4
4 failed attempts (3 kafka_quota, 1 other), 2 retries, 1 stage retry, 1 lost executor
throttles failed 1 times
7 events lost: counts are lower bounds"""


def test_a_snapshot_is_a_table() -> None:
    """A snapshot is a table of clients by throttle time, with gaps and counts."""
    assert str(job()) == PRINTED


def test_none_and_unknown_are_two_things() -> None:
    """A job whose clients reported no throttle differs from one whose clients were not watched."""
    calm = replace(job(), throttles=(("", ClientTotals(Client("alice", "app1", "read"))),), unknown_attempts=0)
    for snapshot, words in (
        (replace(calm, seen_clients=("python", "jvm")), "Throttle times: measured, none (clients of Python and JVMs)"),
        (replace(calm, throttles=()), "Throttle times: measured, none (clients of Python)"),
        (replace(calm, seen_clients=()), "Throttle times: measured in part, none"),
        (
            replace(calm, unknown_attempts=1),
            "Throttle times: measured in part, none (clients of Python; 1 attempt ended",
        ),
        (replace(calm, seen_clients=(), throttles=()), "Throttle times: not measured: no Kafka client of the job has"),
    ):
        assert str(snapshot).splitlines()[1].startswith(words)
    unseen = replace(calm, tasks_seen=False)
    assert "failed attempts, retries and lost executors: not measured" in str(unseen)


def test_hostile_names_stay_on_their_lines() -> None:
    """A name is one line, cut, and nothing in it moves the cursor."""
    lines = str(hostile()).splitlines()
    assert len(lines) == len(PRINTED.splitlines()) - 2
    assert all(line.isprintable() and len(line) < 300 for line in lines)
