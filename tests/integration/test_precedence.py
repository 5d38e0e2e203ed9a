"""The eight levels on a real broker, and what `quotascope explain` says of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic, in_background
from tests.commands import run
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.page import Page
from tests.integration.readings import LIMITS, TYPES, USAGE
from tests.integration.scene import DEFAULT, HOSTILE, TEAM

pytestmark = pytest.mark.real


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A level, and a rule of it with limits of its own for all four quota types."""

    level: str
    entity: Mapping[str, str | None]
    limits: Mapping[str, float]
    """Limits by quota key, in Kafka's units; too high to throttle any client."""

    @property
    def names(self) -> tuple[str, str]:
        user, client_id = (
            DEFAULT if self.entity.get(kind, "") is None else self.entity.get(kind) or ""
            for kind in ("user", "client-id")
        )
        return user, client_id


def _rung(number: int, level: str, **entity: str | None) -> Rung:
    return Rung(
        level=level,
        entity={kind.replace("_", "-"): name for kind, name in entity.items()},
        limits={
            "producer_byte_rate": 1_000_000.0 + number,
            "consumer_byte_rate": 2_000_000.0 + number,
            "request_percentage": 500.0 + number,
            "controller_mutation_rate": 100.0 + number,
        },
    )


LADDER = (
    _rung(1, "user_client", user=TEAM, client_id=HOSTILE),
    _rung(2, "user_default_client", user=TEAM, client_id=None),
    _rung(3, "user", user=TEAM),
    _rung(4, "default_user_client", user=None, client_id=HOSTILE),
    _rung(5, "default_user_default_client", user=None, client_id=None),
    _rung(6, "default_user", user=None),
    _rung(7, "client", client_id=HOSTILE),
    _rung(8, "default_client", client_id=None),
)
KEYS = dict(zip(TYPES, LADDER[0].limits, strict=True))
"""Quota key by quota type."""
TAGS = {
    **dict.fromkeys(("user_client", "user_default_client"), (TEAM, HOSTILE)),
    **dict.fromkeys(("default_user_client", "default_user_default_client"), (TEAM, HOSTILE)),
    **dict.fromkeys(("user", "default_user"), (TEAM, "")),
    **dict.fromkeys(("client", "default_client"), ("", HOSTILE)),
}
"""User and client id under which a broker counts, by the level that decides."""


@pytest.fixture
def ladder(quotas: Quotas) -> Quotas:
    quotas.set(*((rung.entity, rung.limits) for rung in LADDER))
    return quotas


def test_each_level_decides_when_the_stronger_ones_are_gone(
    kafka: Cluster, traffic: Traffic, exporter: Exporter, ladder: Quotas
) -> None:
    """
    The rules are removed one by one, the strongest first, while one client produces, fetches and creates.

    At each step broker, exporter and `explain` agree: the broker counts under the tags that belong to the level, the
    exporter shows that entity with the level's rule and limit, and `explain` names it as the one that decides, and the
    next one as what would apply without it.
    """
    topic = traffic.topic(records=100)
    with in_background(
        lambda t: t.produce(TEAM, HOSTILE, topic, inf, pause=0.05),
        lambda t: t.fetch(TEAM, HOSTILE, topic, inf),
        lambda t: t.overdraw(TEAM, HOSTILE, 1, inf),
        cluster=kafka,
    ):
        for number, rung in enumerate(LADDER):
            following = LADDER[number + 1] if number + 1 < len(LADDER) else None
            eventually(lambda rung=rung: _shows(exporter.page(), rung))  # type: ignore[misc]
            eventually(lambda rung=rung: _counts(kafka, rung))  # type: ignore[misc]
            for quota in _explained(exporter, TEAM, HOSTILE):
                _names(quota, rung, following)
            ladder.remove((rung.entity, rung.limits))
        eventually(lambda: _shows_nothing(exporter.page()))
        for quota in _explained(exporter, TEAM, HOSTILE):
            assert (quota["decision"], quota["fallback"]) == (None, None)
            assert quota["measured_as"] is None


def _shows(page: Page, rung: Rung) -> None:
    user, client_id = TAGS[rung.level]
    labels = {"user": user, "client_id": client_id}
    for quota_type, key in KEYS.items():
        rule = page.labels("kafka_quota_rule_info", quota_type=quota_type, **labels)
        names = rule["level"], rule["rule_user"], rule["rule_client_id"]
        assert names == (rung.level, *rung.names)
        unit = 100 if quota_type == "request" else 1
        assert page.value(LIMITS[quota_type], **labels) == rung.limits[key] / unit


def _counts(kafka: Cluster, rung: Rung) -> None:
    numbers = agent.quota_numbers(kafka.brokers[0].agents.jolokia)
    for quota_type, (attribute, _, _) in USAGE.items():
        key = (TYPES[quota_type], *TAGS[rung.level], attribute)
        assert (numbers.get(key) or 0) > 0, f"{key} does not count"


def _shows_nothing(page: Page) -> None:
    for quota_type, (_, family, _) in USAGE.items():
        assert not list(page.series(family, client_id=HOSTILE))
        assert not list(page.series(family, user=TEAM))
        stale = page.value("kafka_quota_stale_entities", quota_type=quota_type, broker="1")
        assert stale >= len(set(TAGS.values()))


def _names(quota: Mapping[str, Any], rung: Rung, following: Rung | None) -> None:
    configured = rung.limits[quota["quota_key"]]
    assert quota["decision"]["level"] == rung.level
    assert quota["decision"]["configured"] == configured
    user, client_id = TAGS[rung.level]
    assert quota["measured_as"] == {"user": user, "client_id": client_id}
    levels = [level["level"] for level in quota["levels"]]
    assert levels == [rung.level for rung in LADDER]
    configured_levels = [level["level"] for level in quota["levels"] if level["configured"]]
    assert configured_levels == levels[levels.index(rung.level) :]
    fallback = quota["fallback"] and quota["fallback"]["level"]
    assert fallback == (following and following.level)


@pytest.mark.usefixtures("ladder")
def test_explain_needs_no_traffic(exporter: Exporter) -> None:
    """
    Clients that never came are explained as well.

    Without --json a table marks the rule that decides, and a sentence names the next one.
    """
    for user, client_id, level in (
        (TEAM, "another", "user_default_client"),
        ("carol", HOSTILE, "default_user_client"),
        ("<default>", "<default>", "default_user_default_client"),
        # level 5 is for clients with an id; Kafka counts the others for the user as a whole
        ("ANONYMOUS", "", "default_user"),
    ):
        levels = [quota["decision"]["level"] for quota in _explained(exporter, user, client_id)]
        assert levels == [level] * len(TYPES), (user, client_id)
    process = run("explain", "--config", exporter.config, *_named(TEAM, HOSTILE))
    assert process.returncode == 0
    for value in LADDER[0].limits.values():
        assert f"> {value:,.10g}" in process.stdout
    for value in LADDER[1].limits.values():
        assert f" / <default>, {value:,.10g} " in process.stdout


def _explained(exporter: Exporter, user: str, client_id: str) -> Iterator[Mapping[str, Any]]:
    process = run("explain", "--config", exporter.config, "--json", *_named(user, client_id))
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout)
    assert (answer["user"], answer["client_id"]) == (user, client_id)
    assert len(answer["quotas"]) == len(TYPES)
    yield from answer["quotas"]


def _named(user: str, client_id: str) -> tuple[str, ...]:
    return "--user", user, "--client-id", client_id
