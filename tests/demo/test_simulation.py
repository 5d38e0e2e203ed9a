"""The demo as a function of time."""

from __future__ import annotations

import asyncio
from itertools import count
from math import isnan

import pytest

from quotascope.demo import CAST, RULES, Simulation, run
from quotascope.demo.cast import CONNECT, MIRROR, NIGHTLY, ORDERS, CreateTopics, Fetch, Response, Rhythm, Role
from quotascope.demo.simulation import DemoClient, pause_ms
from quotascope.metrics.kafka.entities import Level, QuotaType

START_MS = 1_700_000_000_000
TICK_MS = 20


Key = tuple[str, str, str]
"""Group, user and client-id."""

NIGHTLY_KEY = "Produce", NIGHTLY.user, NIGHTLY.client_id


def played(seconds: int, tick_ms: int = TICK_MS) -> Simulation:
    simulation = Simulation(START_MS)
    for now_ms in range(START_MS, START_MS + seconds * 1_000 + 1, tick_ms):
        simulation.advance(now_ms)
    return simulation


def values(simulation: Simulation, name: str, now_ms: int) -> dict[Key, float]:
    return {
        (key.group, key.tags["user"], key.tags["client-id"]): metric.value(now_ms)
        for key, metric in simulation.registry.metrics().items()
        if key.name == name
    }


def bounced(simulation: Simulation, now_ms: int) -> set[str]:
    """Return the quota types under which an entity was throttled in the last seconds."""
    return {
        group for (group, _, _), throttle_ms in values(simulation, "throttle-time", now_ms).items() if throttle_ms > 0
    }


@pytest.fixture(scope="module")
def minute() -> Simulation:
    return played(60)


END_MS = START_MS + 60_000


def test_all_four_quotas_bite_within_twenty_seconds() -> None:
    """A producer is throttled within five seconds; after twenty each of the four quotas has had an effect."""
    simulation = played(5)
    assert "Produce" in bounced(simulation, START_MS + 5_000)
    for now_ms in range(START_MS + 5_000 + TICK_MS, START_MS + 20_000 + 1, TICK_MS):
        simulation.advance(now_ms)
    assert bounced(simulation, START_MS + 20_000) == {quota_type.group for quota_type in QuotaType}


def test_every_level_and_every_rule_decides_for_a_client() -> None:
    """Each of Kafka's eight levels and each rule decides for a client of the demo, and one entity is unlimited."""
    levels = set()
    for quota_type in QuotaType:
        rules = Simulation(START_MS).quotas.of(quota_type).rules()
        decided = [rules.decide(role.user, role.client_id) for role in CAST]
        assert set(RULES[quota_type]) <= {decision.entity for decision in decided}
        levels |= {decision.level for decision in decided}
    assert levels == set(Level)


@pytest.mark.slow
def test_well_behaved_clients_are_never_throttled() -> None:
    """A client below the limit is not throttled for ten minutes, whatever the others do."""
    simulation, means_ms = Simulation(START_MS), dict[Key, set[float]]()
    for now_ms in range(START_MS, START_MS + 600_001, 50):
        simulation.advance(now_ms)
        if now_ms % 10_000 == 0:  # an average lasts for the windows of a minute
            for key, mean_ms in values(simulation, "throttle-time", now_ms).items():
                means_ms.setdefault(key, set()).add(0.0 if isnan(mean_ms) else mean_ms)
    well_behaved = {ORDERS.user, CONNECT.user, CONNECT.client_id, MIRROR.client_id}
    own_means = {key: means for key, means in means_ms.items() if well_behaved & set(key[1:])}
    assert len(own_means) > len(well_behaved)
    assert set().union(*own_means.values()) == {0.0}
    assert any(max(means) > 0 for means in means_ms.values())


def test_a_minute_shows_each_kind_of_client(minute: Simulation) -> None:
    """
    The deploy tool meets error 89, a well-behaved producer is near its limit, and the unlimited mirror reads most.

    One user is percent-encoded in Kafka's metrics, and one client-id has characters that JMX quotes.
    """
    (refused,) = (bean for name, bean in minute.broker.beans().items() if "error=THROTTLING_QUOTA_EXCEEDED" in name)
    assert refused["Count"] > 0
    assert values(minute, "throttle-time", END_MS)["ControllerMutation", "deploy", ""] > 0
    rates = values(minute, "byte-rate", END_MS)
    assert 800_000 < rates["Produce", "orders", ""] < 1_000_000
    fetched = {key: rate for key, rate in rates.items() if key[0] == "Fetch"}
    assert max(fetched, key=lambda key: fetched[key]) == ("Fetch", "", MIRROR.client_id)
    tags = [name.tags for name in minute.registry.metrics() if name.tags]
    assert "CN%3Dbilling%2CO%3DAcme" in {tag.get("user") for tag in tags}
    assert 'invoice writer #2 "A/B"*' in {tag.get("client-id") for tag in tags}


@pytest.mark.slow
def test_limits_hold() -> None:
    """Over two minutes the nightly job gets exactly its limit, although it requests three times as much."""
    simulation = Simulation(START_MS)
    rates = []
    for now_ms in range(START_MS, START_MS + 120_000, TICK_MS):
        simulation.advance(now_ms)
        if now_ms % 1_000 == 0:
            rates.append(values(simulation, "byte-rate", now_ms).get(NIGHTLY_KEY, 0.0))
    assert 1_000_000 < sum(rates) / len(rates) < 2_000_000


def test_two_runs_are_alike(minute: Simulation) -> None:
    """Two runs of the same minute give the same numbers."""
    again = played(60)
    for name in ("throttle-time", "byte-rate"):
        assert values(again, name, END_MS) == pytest.approx(values(minute, name, END_MS), rel=0, abs=0, nan_ok=True)


def test_reports_when_it_is_due_next() -> None:
    """The simulation reports when its next request is due."""
    simulation = Simulation(START_MS)
    due_ms = simulation.advance(START_MS)
    assert START_MS < due_ms <= START_MS + 100


def test_clients_go_on_after_a_suspension() -> None:
    """A machine that slept for an hour finds the clients at their usual pace."""
    simulation = played(10)
    later_ms = START_MS + 3_610_000
    for now_ms in range(later_ms, later_ms + 15_000, TICK_MS):
        simulation.advance(now_ms)
    rate = values(simulation, "byte-rate", later_ms + 15_000)["Produce", "orders", ""]
    assert 600_000 < rate < 1_000_000


ROLE = Role(
    user="dana",
    client_id="notebook",
    request=Fetch(size=1_000),
    thread_ms=1.0,
    rhythm=Rhythm(every_ms=100, jitter=0.0, first_ms=40),
)


@pytest.mark.parametrize(
    ("answers", "due_ms"),
    [
        # the first request comes when the rhythm says so
        ([], 40),
        # a request that went out a little late does not move those after it
        ([(0, 60)], 140),
        # the next request comes no earlier than the response asked for (KIP-219)
        ([(900, 40)], 940),
        # what a throttle held up is not sent all at once afterwards
        ([(900, 40), (0, 945)], 1_040),
        ([(900, 40), (0, 945), (0, 9_000)], 9_100),
    ],
)
def test_when_a_client_is_due(answers: list[tuple[int, int]], due_ms: int) -> None:
    """Each client is due after its throttle in ms."""
    client = DemoClient(ROLE, START_MS)
    for throttle_ms, at_ms in answers:
        client.answered(Response(throttle_ms=throttle_ms), START_MS + at_ms)
    assert (client.due_ms, client.request) == (START_MS + due_ms, ROLE.request)


def test_asks_again_for_what_was_not_done() -> None:
    """Refused topics are tried again right after the throttle, then the usual work goes on."""
    client = DemoClient(ROLE, START_MS)
    refused = CreateTopics(partitions=(3,))
    client.answered(Response(throttle_ms=10, again=refused), START_MS + 40)
    assert (client.due_ms, client.request) == (START_MS + 50, refused)
    client.answered(Response(), START_MS + 50)
    assert client.request == ROLE.request


def test_pause() -> None:
    """The pause is never so short that it costs much, never so long that a throttle would end late."""
    assert [pause_ms(due_in_ms) for due_in_ms in (-5_000, 3, 40, 5_000)] == [10, 10, 40, 100]


async def test_runs_until_canceled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients work by the clock without a break until they are canceled."""
    simulation = Simulation(START_MS)
    ticks = count(START_MS, 10)
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))
    task = asyncio.create_task(run(simulation, lambda: next(ticks)))
    while next(ticks) < START_MS + 5_000:
        await sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    names = simulation.registry.metrics()
    assert any(name.group == QuotaType.PRODUCE.group for name in names)
