"""Shadows of a real broker: what three of them say would change, and what changes when their limits are set."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from math import inf

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Load, Traffic, in_background
from tests.commands import run
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for

pytestmark = pytest.mark.real

KEY = "producer_byte_rate"
IN_FORCE: tuple[Rule, ...] = (
    ({"user": "alice"}, {KEY: 40_000.0}),
    ({"user": "bob"}, {KEY: 1e9}),
    ({"user": "carol"}, {"controller_mutation_rate": 2.0}),
)
LIMITS = {"tighter": (20_000.0, 10_000.0), "equal": (40_000.0, 1e9), "looser": (100_000.0, 2e9)}
"""Limits of alice and bob, by shadow."""


def rules(shadow: str) -> tuple[Rule, ...]:
    return tuple(({"user": user}, {KEY: limit}) for user, limit in zip(("alice", "bob"), LIMITS[shadow], strict=True))


@pytest.fixture(scope="module")
def shadowed(
    kafka: Cluster, traffic: Traffic, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Exporter, Quotas]]:
    """
    Yield an exporter with three shadows.

    Alice produces as much as she may, bob a little, and carol's bucket of mutations is in debt.
    """
    folder = tmp_path_factory.mktemp("shadow")
    candidates = [{"name": name, "quotas": [{**entity, **quotas} for entity, quotas in rules(name)]} for name in LIMITS]
    file = folder / "shadow.yaml"
    file.write_text(json.dumps({"candidates": candidates}))
    settings = settings_for(kafka.brokers, kafka.admin) | {"shadow": {"file": str(file)}}
    topic = traffic.topic()
    clients: tuple[Callable[[Traffic], Load], ...] = (
        lambda clients: clients.produce("alice", "eager", topic, inf),
        lambda clients: clients.produce("bob", "modest", topic, inf, pause=0.02),
        lambda clients: clients.overdraw("carol", "admin", 30, inf),
    )
    with closing(Quotas(kafka.connection())) as quotas:
        quotas.set(*IN_FORCE)
        try:
            with in_background(*clients, cluster=kafka), serving(folder / "serve", settings) as exporter:
                yield exporter, quotas
        finally:
            quotas.clear()


def changes(exporter: Exporter, shadow: str, quota_type: str) -> dict[str, float]:
    """Entities by change, those with any."""
    page = exporter.page()
    names = ("new", "longer", "shorter", "ended", "unchanged")
    labels = {"shadow": shadow, "quota_type": quota_type}
    counts = {name: page.get("kafka_quota_shadow_throttled_entities", **labels, change=name) for name in names}
    return {name: count for name, count in counts.items() if count}


def test_three_shadows_say_what_happens_when_they_are_set(shadowed: tuple[Exporter, Quotas], kafka: Cluster) -> None:
    """A lasting throttle is no change; a raised limit is a bound that holds: alice uses it up, too."""
    exporter, quotas = shadowed

    def predicted() -> None:
        assert changes(exporter, "tighter", "produce") == {"longer": 1, "new": 1}
        assert changes(exporter, "equal", "produce") == {"unchanged": 1}
        assert changes(exporter, "looser", "produce") == {"shorter": 1}
        for shadow in LIMITS:
            assert changes(exporter, shadow, "controller_mutation") == {"unchanged": 1}

    eventually(predicted, seconds=90, pause=0.5)

    def held_back() -> None:
        process = run("shadow", "status", "--exporter", exporter.url, "--json")
        assert process.returncode == 3, process.stderr
        (looser,) = (shadow for shadow in json.loads(process.stdout)["shadows"] if shadow["name"] == "looser")
        (alice,) = (row for row in looser["entities"] if (row["user"], row["quota_type"]) == ("alice", "produce"))
        assert (alice["change"], alice["held_back"], alice["throttle_time_seconds"]) == ("shorter", True, None)

    eventually(held_back, seconds=90, pause=0.5)
    command = ("quotas", "set", f"{KEY}=100000", "--user", "alice", "--bootstrap-servers", kafka.admin)
    plan = json.loads(run(*command, "--exporter", exporter.url, "--json", "--apply").stdout)
    (affected,) = plan["affected"]
    assert (plan["applied"], affected["user"], affected["held_back"]) == (True, "alice", True)
    bound = affected["new_utilization"]
    assert bound == pytest.approx(affected["usage"] / LIMITS["looser"][0])
    assert 0.2 < bound < 0.8

    def used_up() -> None:
        page = exporter.page()
        labels = {"quota_type": "produce", "user": "alice"}
        used = page.get("kafka_quota_utilization_ratio", **labels)
        assert used is not None
        assert used > max(bound, 0.9)
        assert page.get("kafka_quota_throttle_time_seconds", **labels)

    eventually(used_up, seconds=90, pause=0.5)

    quotas.set(*rules("tighter"))

    def bob_too() -> None:
        page = exporter.page()
        for user in ("alice", "bob"):
            assert page.get("kafka_quota_throttle_time_seconds", quota_type="produce", user=user)
        assert changes(exporter, "tighter", "produce") == {"unchanged": 2}

    eventually(bob_too, seconds=120, pause=0.5)
