"""`quotascope request-topic`: the topic to which brokers' request logs are shipped."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from .options import grouped
from .settings import AdminOptions

if TYPE_CHECKING:
    from quotascope.clients.accounting import ThrottleAccount
    from quotascope.pipeline.request_topic import Ensured

EXAMPLES = """
Examples:

quotascope request-topic kafka-request-log --partitions 12 --replication-factor 3 --retention-hours 48 \
--bootstrap-servers broker-1:9092

quotascope request-topic kafka-request-log --config /etc/quotascope.yaml --wait-seconds 300

Exit code 0: the topic exists. 1: it does not, or it has other settings than these.
"""
_new_option = partial(typer.Option, rich_help_panel="If the topic is created")


@grouped
def request_topic(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Name of the topic; each message will be a line of a log.")
    ],
    *,
    partitions: Annotated[
        int | None, _new_option(min=1, metavar="N", help="Partitions of the topic; else the cluster's default.")
    ] = None,
    replication_factor: Annotated[
        int | None, _new_option(min=1, metavar="N", help="Replicas of each partition; else the cluster's default.")
    ] = None,
    retention_hours: Annotated[
        int | None,
        _new_option(
            min=1, max=1_000_000, metavar="HOURS", help="How long Kafka keeps lines; else the cluster's default."
        ),
    ] = None,
    wait_seconds: Annotated[
        int,
        _new_option(
            min=1,
            max=86_400,
            metavar="SECONDS",
            help=(
                "How long to retry requests that a controller mutation quota refuses, each time after the throttle "
                "time."
            ),
        ),
    ] = 60,
    kafka: AdminOptions,
) -> None:
    """
    Create the topic to which brokers' request logs are shipped, unless it exists.

    An existing topic is not changed.
    `quotascope ingest kafka://SERVERS/TOPIC` reads the topic: see the documentation (The request log).
    """
    from quotascope.clients.accounting import ThrottleAccount
    from quotascope.clients.adapter import open_topic_admin
    from quotascope.exporter.limits.admin import connection_of
    from quotascope.pipeline.request_topic import ensure, shape_of

    from .compose import kafka_of

    account = ThrottleAccount()
    connection = connection_of(kafka_of(kafka.configuration()))
    shape = shape_of(partitions, replication_factor, retention_hours)
    admin = open_topic_admin(connection, account)
    try:
        ensured = ensure(admin, topic, shape, wait_seconds * 1_000)
    finally:
        admin.close()
        _print_throttles(account)
    typer.echo(_summary(topic, ensured))


def _print_throttles(account: ThrottleAccount) -> None:
    """Print on standard error how long quotas throttled this command, if they did."""
    totals = account.totals()
    if seconds := sum(total.throttled_ms for total in totals) / 1_000:
        retries = sum(total.quota_retries for total in totals)
        typer.echo(
            f"quotascope: quotas throttled this client for {seconds:.1f} s in all; refused requests that were "
            f"repeated: {retries}",
            err=True,
        )


def _summary(topic: str, ensured: Ensured) -> str:
    """Return a sentence on whether the topic was created, with its partitions and replicas."""
    topic_shape = ensured.topic
    numbers = [
        f"{number} {noun}{'' if number == 1 else 's'}"
        for noun, number in (
            ("partition", topic_shape.partitions),
            ("replica", topic_shape.replication_factor),
        )
        if number is not None
    ]
    what = "was made" if ensured.created else "is there already"
    return f"{topic} {what}: {', '.join(numbers)}" if numbers else f"{topic} {what}"
