"""The demo as a function of time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from quotascope.demo import CAST, RULES, Simulation, run
from quotascope.demo.cast import CONNECT, MIRROR, NIGHTLY, ORDERS, CreateTopics, Fetch, Response, Rhythm, Role
from quotascope.demo.simulation import DemoClient, pause_ms
from quotascope.metrics import Level, QuotaType

START_MS = 1_700_000_000_000
TICK_MS = 20


Key = tuple[str, str, str]
"""Group, user and client-id."""

NIGHTLY_KEY = "Produce", NIGHTLY.user, NIGHTLY.client_id


def played(seconds: int, tick_ms: int = TICK_MS) -> Simulation:
    """The demo after so many seconds."""
    simulation = Simulation(START_MS)
    for now_ms in range(START_MS, START_MS + seconds * 1_000 + 1, tick_ms):
        simulation.advance(now_ms)
    return simulation


def values(simulation: Simulation, name: str, now_ms: int) -> dict[Key, float]:
    """One metric of all entities."""
    return {
        (key.group, key.tags["user"], key.tags["client-id"]): metric.value(now_ms)
        for key, metric in simulation.registry.metrics().items()
        if key.name == name
    }


def bounced(simulation: Simulation, now_ms: int) -> set[str]:
    """The quota types under which an entity was throttled or refused."""
    counts = {
        **values(simulation, "throttle-time-total", now_ms),
        **values(simulation, "rejection-count", now_ms),
    }
    return {group for (group, _, _), count in counts.items() if count > 0}


@pytest.fixture(scope="module")
def minute() -> Simulation:
    """The demo after a minute."""
    return played(60)


END_MS = START_MS + 60_000


def test_somebody_is_throttled_within_five_seconds() -> None:
    """Who starts the demo sees a throttled producer before looking away."""
    assert "Produce" in bounced(played(5), START_MS + 5_000)


def test_all_four_quotas_bite_within_twenty_seconds() -> None:
    """Each of the four kinds of quota has throttled or refused an entity after twenty seconds."""
    groups = {quota_type.group for quota_type in QuotaType}
    assert bounced(played(20), START_MS + 20_000) == groups


def test_topics_are_refused(minute: Simulation) -> None:
    """The deploy tool meets error 89."""
    refused = values(minute, "rejection-count", END_MS)
    assert refused["ControllerMutation", "deploy", ""] > 0


def resolved(simulation: Simulation) -> Iterator[tuple[Role, QuotaType, Level]]:
    """What decides for each client under each quota type."""
    for role in CAST:
        for quota_type in QuotaType:
            rules = simulation.quotas.of(quota_type).rules()
            yield role, quota_type, rules.decide(role.user, role.client_id).level


def test_every_level_decides_for_somebody() -> None:
    """All of Kafka's eight levels can be seen at work, and an entity without any limit."""
    assert {level for _, _, level in resolved(Simulation(START_MS))} == set(Level)


@pytest.mark.parametrize("quota_type", QuotaType, ids=lambda kind: kind.label)
def test_every_rule_decides_for_somebody(quota_type: QuotaType) -> None:
    """No rule is there in vain."""
    rules = Simulation(START_MS).quotas.of(quota_type).rules()
    used = {rules.decide(role.user, role.client_id).entity for role in CAST}
    assert set(RULES[quota_type]) <= used


@pytest.mark.slow
def test_well_behaved_clients_are_never_throttled() -> None:
    """Who stays below the limit is left alone for ten minutes, whatever the others do."""
    end_ms = START_MS + 600_000
    totals = values(played(600, tick_ms=50), "throttle-time-total", end_ms)
    well_behaved = {ORDERS.user, CONNECT.user, CONNECT.client_id, MIRROR.client_id}
    own = {key: total for key, total in totals.items() if well_behaved & set(key[1:])}
    assert len(own) > len(well_behaved)
    assert not any(own.values())


def test_orders_are_near_their_limit(minute: Simulation) -> None:
    """The well-behaved producer uses more than four fifths of its quota."""
    rate = values(minute, "byte-rate", END_MS)["Produce", "orders", ""]
    assert 800_000 < rate < 1_000_000


def test_somebody_is_unlimited(minute: Simulation) -> None:
    """The mirror reads most of all and no rule stops it."""
    rates = {key: rate for key, rate in values(minute, "byte-rate", END_MS).items() if key[0] == "Fetch"}
    assert max(rates, key=lambda key: rates[key]) == ("Fetch", "", MIRROR.client_id)


@pytest.mark.slow
def test_limits_hold() -> None:
    """Over two minutes the nightly job gets through what it may, although it asks for three times as much."""
    simulation = Simulation(START_MS)
    rates = []
    for now_ms in range(START_MS, START_MS + 120_000, TICK_MS):
        simulation.advance(now_ms)
        if now_ms % 1_000 == 0:
            rates.append(values(simulation, "byte-rate", now_ms).get(NIGHTLY_KEY, 0.0))
    assert 1_000_000 < sum(rates) / len(rates) < 2_000_000


def test_names_need_encoding(minute: Simulation) -> None:
    """One user is percent-encoded in Kafka's metrics, and one client-id has characters that JMX quotes."""
    tags = [name.tags for name in minute.registry.metrics() if name.tags]
    assert "CN%3Dbilling%2CO%3DAcme" in {tag.get("user") for tag in tags}
    assert 'invoice writer #2 "A/B"*' in {tag.get("client-id") for tag in tags}


def test_two_runs_are_alike(minute: Simulation) -> None:
    """The same minute again gives the same numbers."""
    again = values(played(60), "throttle-time-total", END_MS)
    assert again == values(minute, "throttle-time-total", END_MS)


def test_reports_when_it_is_due_next() -> None:
    """Between two requests there is nothing to do, and the simulation knows until when."""
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


def client() -> DemoClient:
    """A client before its first request."""
    return DemoClient(ROLE, START_MS)


def test_first_request() -> None:
    """The first request comes when the rhythm says so."""
    fresh = client()
    assert (fresh.due_ms, fresh.request) == (START_MS + 40, ROLE.request)


def test_pace_is_kept_in_spite_of_small_delays() -> None:
    """A request that went out a little late does not move those after it."""
    one = client()
    one.answered(Response(), START_MS + 60)
    assert one.due_ms == START_MS + 140


def test_waits_as_long_as_it_is_throttled() -> None:
    """The next request comes no earlier than the response asked for (KIP-219)."""
    one = client()
    one.answered(Response(throttle_ms=900), START_MS + 40)
    assert one.due_ms == START_MS + 940


def test_does_not_make_up_for_a_throttle() -> None:
    """What a throttle held up is not sent all at once afterwards."""
    one = client()
    one.answered(Response(throttle_ms=900), START_MS + 40)
    one.answered(Response(), START_MS + 945)
    assert one.due_ms == START_MS + 1_040
    one.answered(Response(), START_MS + 9_000)
    assert one.due_ms == START_MS + 9_100


def test_asks_again_for_what_was_not_done() -> None:
    """Refused topics are tried again right after the throttle, then the usual work goes on."""
    one = client()
    refused = CreateTopics(partitions=(3,))
    one.answered(Response(throttle_ms=10, again=refused), START_MS + 40)
    assert (one.due_ms, one.request) == (START_MS + 50, refused)
    one.answered(Response(), START_MS + 50)
    assert one.request == ROLE.request


def test_same_name_same_randomness() -> None:
    """Two runs of one client are alike."""
    role = Role(user="a", client_id="b", request=ROLE.request, thread_ms=1.0, rhythm=Rhythm(every_ms=100, jitter=0.5))
    first, second = DemoClient(role, START_MS), DemoClient(role, START_MS)
    for one in (first, second):
        for _ in range(5):
            one.answered(Response(), one.due_ms)
    assert first.due_ms == second.due_ms


@pytest.mark.parametrize(("due_in_ms", "pause"), [(-5_000, 10), (3, 10), (40, 40), (5_000, 100)])
def test_pause(due_in_ms: int, pause: int) -> None:
    """Never so short that it costs much, never so long that a throttle would end late."""
    assert pause_ms(due_in_ms) == pause


async def test_runs_until_canceled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients work as the clock goes on, without a break, until it is ended."""
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
