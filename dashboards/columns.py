"""Columns that several tables have."""

from __future__ import annotations

from quotascope.alerts import Site

from .links import to_entity
from .model import Column, Link, Look, Step
from .steps import DELAY_IF_ANY, JOB_WAITS, USED

LEVELS = {
    "user_client": "1  user + client-id",
    "user_default_client": "2  user + default client-id",
    "user": "3  user",
    "default_user_client": "4  default user + client-id",
    "default_user_default_client": "5  default user + default client-id",
    "default_user": "6  default user",
    "client": "7  client-id",
    "default_client": "8  default client-id",
}
QUOTA_TYPES = {
    "produce": "produce",
    "fetch": "fetch",
    "request": "request time",
    "controller_mutation": "topic changes",
}
CAUSES = {
    "own": "its own",
    "controller_mutation": "topic changes",
    "unknown": "unknown",
}


def quota_type() -> Column:
    """Which of the four quotas it is."""
    return Column(title="Quota", source="quota_type", width=120, texts=QUOTA_TYPES)


def who(site: Site) -> tuple[Column, ...]:
    """User and client-id, each a way to the dashboard about them."""
    return named(to_entity(site))


def named(link: Link) -> tuple[Column, ...]:
    """User and client-id with a link."""
    return (
        Column(title="User", source="user", links=(link,)),
        Column(title="Client-id", source="client_id", links=(link,)),
    )


def cluster(site: Site) -> Column:
    """The cluster; links from the row need it to be shown."""
    return Column(title="Cluster", source=site.cluster_label, width=120)


def rule() -> tuple[Column, ...]:
    """The rule that decides: its level, and whom it names."""
    return (
        Column(title="Rule", source="level", width=230, texts=LEVELS),
        Column(title="Rule's user", source="rule_user", width=140),
        Column(title="Rule's client-id", source="rule_client_id", width=140),
    )


def used(letter: str) -> Column:
    """How much of the limit is used, as a bar that is full at the limit."""
    return gauge("Used", letter, USED, width=190)


def gauge(
    title: str, letter: str, steps: tuple[Step, ...], width: int | None = None
) -> Column:
    """A ratio as a bar."""
    return Column(
        title=title,
        source=letter,
        unit="percentunit",
        look=Look.GAUGE,
        steps=steps,
        full=1,
        width=width,
    )


def delayed(letter: str) -> Column:
    """The throttle time, on its colour."""
    return Column(
        title="Delay",
        source=letter,
        unit="s",
        look=Look.BACKGROUND,
        steps=DELAY_IF_ANY,
        width=90,
    )


def waiting(letter: str) -> Column:
    """How long a job waits, on its colour."""
    return Column(
        title="Waiting",
        source=letter,
        unit="short",
        look=Look.BACKGROUND,
        steps=JOB_WAITS,
        width=100,
    )


def number(title: str, letter: str, unit: str, width: int | None = 120) -> Column:
    """A plain number."""
    return Column(title=title, source=letter, unit=unit, width=width)


def cause() -> Column:
    """What throttles: this quota, or that of topic changes."""
    return Column(title="Cause", source="cause", width=120, texts=CAUSES)
