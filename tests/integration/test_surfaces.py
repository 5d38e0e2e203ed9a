"""
One scene on every surface: what each says of who is throttled, by which rule and how much is what the clients counted.

The clients run once; all surfaces are read within seconds of each other, and each test compares what one of them says.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Load, Traffic, in_background
from tests.commands import run
from tests.integration import agent
from tests.integration.alerting.watch import Watch, watching
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.surfaces import (
    OF_MUTATIONS,
    Entity,
    Rows,
    of_alerts,
    of_documents,
    of_metrics,
    of_rules,
    of_tables,
    of_terminal,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

RECORD: Final = 1000
MUTATIONS: Final = 30
"""Partitions of a request, once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client, and the one rule that it is near or above."""

    name: str
    entity: Entity
    words: str
    """The entity as pages and terminal call it."""
    rule: str
    alert_rule: str = ""
    """The rule as alerts call it."""
    client_id: str
    """Client id of its requests, which its entity may lack."""
    quota: Rule
    throttled: bool = True

    @property
    def limit(self) -> float:
        (limit,) = self.quota[1].values()
        return limit

    def used(self, load: Load, seconds: float) -> float:
        """Return its utilization by its own counts; of what Kafka counts by time or in bursts: all of its limit."""
        if self.entity[0] in {"request", "controller_mutation"}:
            return 1
        return load.count * RECORD / seconds / self.limit

    def __str__(self) -> str:
        return self.name


SMALL_BATCHES: Final = Client(
    name="small batches",
    entity=("produce", "alice", "eager"),
    words="alice / eager",
    rule="1 alice / eager",
    alert_rule='1 user "alice" client-id "eager"',
    client_id="eager",
    quota=({"user": "alice", "client-id": "eager"}, {"producer_byte_rate": 1_000_000.0}),
)
REQUESTS: Final = Client(
    name="requests",
    entity=("request", "mallory", ""),
    words="user mallory",
    rule="3 user mallory",
    alert_rule='3 user "mallory"',
    client_id="busy",
    # on a busy machine, the client sends less, and each request takes more time: neither twice as much
    quota=({"user": "mallory"}, {"request_percentage": 0.7}),
)
CONSUMER: Final = Client(
    name="consumer",
    entity=("fetch", "carol", ""),
    words="user carol",
    rule="3 user carol",
    alert_rule='3 user "carol"',
    client_id="reader",
    quota=({"user": "carol"}, {"consumer_byte_rate": 90_000.0}),
)
MUTATOR: Final = Client(
    name="mutations",
    entity=("controller_mutation", "bob", ""),
    words="user bob",
    rule="3 user bob",
    alert_rule='3 user "bob"',
    client_id="admin",
    quota=({"user": "bob"}, {"controller_mutation_rate": 2.0}),
)
NEAR: Final = Client(
    name="near",
    entity=("produce", "svc:team b", "near"),
    words='"svc:team b" / near',
    rule='2 "svc:team b" / <default>',
    client_id="near",
    quota=({"user": "svc:team b", "client-id": None}, {"producer_byte_rate": 66_000.0}),
    throttled=False,
)
CLIENTS: Final = (SMALL_BATCHES, REQUESTS, CONSUMER, MUTATOR, NEAR)
THROTTLED: Final = tuple(client for client in CLIENTS if client.throttled)
SILENT: Final = (SMALL_BATCHES, REQUESTS)
"""Clients whose single throttles are short."""
REQUESTS_OF_MUTATOR: Final[Entity] = ("request", "", "admin")
"""The entity in whose series a broker shows the throttles of forwarded requests: its own rule is far away."""
IDLE: Final = "3 user idle"
OTHER_RULES: Final[tuple[Rule, ...]] = (
    ({"user": "idle"}, {"producer_byte_rate": 10_000.0}),
    ({"client-id": None}, {"request_percentage": 150.0}),
)
RAISED: Final = 2_000_000
LOGIN: Final = "SCRAM-SHA-512"
SHADOWS: Final = (
    {
        "name": "tighter",
        "quotas": [
            {"user": "alice", "client-id": "eager", "producer_byte_rate": 500_000},
            {"user": "svc:team b", "client-id": "<default>", "producer_byte_rate": 20_000},
        ],
    },
    {"name": "looser", "quotas": [{"user": "alice", "client-id": "eager", "producer_byte_rate": RAISED}]},
    {"name": "equal", "quotas": [{**entity, **quotas} for entity, quotas in (SMALL_BATCHES.quota, REQUESTS.quota)]},
)
CHANGES: Final[Mapping[str, dict[Entity, str]]] = {
    "tighter": {SMALL_BATCHES.entity: "longer", NEAR.entity: "new"},
    "looser": {SMALL_BATCHES.entity: "shorter"},
    "equal": {},
}
"""Changes by shadow; all other throttles are those of now."""

ROWS: Final = (
    *("metrics", "API: entities", "API: explain", "overview", "entity page"),
    *("status", "status --json", "top", "top --json", "alerts"),
)
"""The surfaces with throttle time, utilization and rule of an entity."""
OF_ENTITIES: Final = tuple(surface for surface in ROWS if surface != "alerts")
"""Surfaces that also show entities without a throttle."""
RECORDED: Final = (
    "entity:kafka_quota_throttled:persistent",
    "entity:kafka_quota_throttled:share15m",
    "cluster:kafka_quota_throttled_entities:count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All surfaces as they were read: metrics, page, API, dashboards and alerts."""

    rows: Mapping[str, Rows]
    rules: Any
    rules_page: Mapping[tuple[str, str], tuple[str, str]]
    explained: Mapping[str, Any]
    explained_in_terminal: Mapping[str, str]
    episodes: Any
    alerts: Any
    recorded: Mapping[str, Mapping[Entity, float]]
    plan: Any
    plan_in_terminal: str
    shadows: Any
    shadow_exit_code: int
    terminal_counts: str
    """The first line of `top`."""
    page_counts: str
    """The overview, as text."""
    began_at: float
    read_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Statements of the surfaces, and counts of the clients until shortly after."""

    said: Reading
    raised: float
    """The utilization of the client with small batches after its limit was raised, NaN if that was not seen."""
    loads: Mapping[str, Load]
    seconds: Mapping[str, float]

    def mean_throttle(self, client: Client) -> float:
        throttles = self.loads[client.name].throttles_ms
        return sum(throttles) / len(throttles) / 1000

    def used(self, client: Client) -> float:
        return client.used(self.loads[client.name], self.seconds[client.name])


@pytest.fixture(scope="module")
def scene(kafka: Cluster, traffic: Traffic, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("surfaces")
    (folder / "watch").mkdir()
    shadows = folder / "shadow.yaml"
    shadows.write_text(json.dumps({"candidates": SHADOWS}))
    settings = settings_for(kafka.brokers, kafka.admin) | {"shadow": {"file": str(shadows)}}
    loads, seconds = dict[str, Load](), dict[str, float]()
    eventually(lambda: _assert_quiet(kafka), seconds=150, pause=1)
    began_at = time.time()
    with closing(Quotas(kafka.connection())) as quotas:
        quotas.set(*(client.quota for client in CLIENTS), *OTHER_RULES)
        try:
            with (
                in_background(
                    *_clients(traffic.topic(), traffic.topic(records=500), loads, seconds),
                    cluster=kafka,
                    mechanism=LOGIN,
                ),
                serving(folder / "serve", settings) as exporter,
                watching(folder / "watch", exporter) as watch,
            ):
                try:
                    reading = eventually(lambda: _steady(exporter, watch, kafka, began_at), seconds=150, pause=0.5)
                except AssertionError:  # what did not come true fails in the test that is about it
                    reading = _read(exporter, watch, kafka, began_at)
                quotas.set((SMALL_BATCHES.quota[0], {"producer_byte_rate": RAISED}))
                raised = nan
                with suppress(AssertionError):
                    raised = eventually(lambda: _used_more(exporter), seconds=60, pause=0.5)
        finally:
            quotas.clear()
    return Scene(said=reading, raised=raised, loads=loads, seconds=seconds)


def _clients(
    topic: str, filled: str, loads: dict[str, Load], seconds: dict[str, float]
) -> Iterator[Callable[[Traffic], Load]]:
    """Yield the load of each client; when it ends, it stores its counts and its duration."""
    calls: Mapping[str, Callable[[Traffic], Load]] = {
        "small batches": lambda traffic: traffic.produce_batches("alice", "eager", topic, inf, records=16),
        "requests": lambda traffic: traffic.request("mallory", "busy", inf),
        "consumer": lambda traffic: traffic.fetch("carol", "reader", filled, inf),
        "mutations": lambda traffic: traffic.overdraw("bob", "admin", MUTATIONS, inf),
        "near": lambda traffic: traffic.produce("svc:team b", "near", topic, inf, RECORD, pause=0.02),
    }

    def counted(name: str) -> Callable[[Traffic], Load]:
        def call(traffic: Traffic) -> Load:
            began = time.monotonic()
            loads[name] = calls[name](traffic)
            seconds[name] = time.monotonic() - began
            return loads[name]

        return call

    return (counted(name) for name in calls)


def _assert_quiet(kafka: Cluster) -> None:
    """
    Assert that no broker throttles anybody.

    Clients of other scenes leave their throttle times for a minute, which an exporter shows until it has read limits.
    """
    for node in kafka.brokers:
        numbers = agent.quota_numbers(node.agents.jolokia)
        assert not [key for key, value in numbers.items() if key[3] == "throttle-time" and value]


def _settled(exporter: Exporter, watch: Watch) -> None:
    """Assert that every throttle has begun, the windows are full, and the alerts fire."""
    rows = of_metrics(exporter.page())
    assert rows.keys() >= {client.entity for client in CLIENTS}
    assert all(rows[client.entity].throttle_seconds and 0.6 < rows[client.entity].used < 1.7 for client in THROTTLED)
    assert rows[NEAR.entity].used > 0.6
    firing = [alert for alert in watch.prometheus.get("alerts")["alerts"] if alert["state"] == "firing"]
    alerts = of_alerts(firing, {})
    assert alerts.keys() == {client.entity for client in THROTTLED}
    assert all(0.6 < row.used < 1.7 for row in alerts.values())
    assert _recorded(watch, "entity:kafka_quota_throttled:persistent").keys() == {client.entity for client in THROTTLED}
    share = _recorded(watch, "entity:kafka_quota_throttled:share15m")
    assert all(share.get(client.entity, 0) > 0.5 for client in THROTTLED)


def _steady(exporter: Exporter, watch: Watch, kafka: Cluster, began_at: float) -> Reading:
    """Return a reading of all surfaces while clients were where the scene has them, before it and after it."""
    _settled(exporter, watch)
    reading = _read(exporter, watch, kafka, began_at)
    _settled(exporter, watch)
    return reading


def _used_more(exporter: Exporter) -> float:
    """Return the utilization under the raised limit, once it is above that of before."""
    page, (_, user, client_id) = exporter.page(), SMALL_BATCHES.entity
    labels = {"user": user, "client_id": client_id}
    assert page.value("kafka_quota_produce_limit_bytes_per_second", **labels) == RAISED
    used = page.value("kafka_quota_utilization_ratio", quota_type="produce", **labels)
    assert used > SMALL_BATCHES.limit / RAISED
    return used


def _recorded(watch: Watch, name: str) -> Mapping[Entity, float]:
    """Return a recorded series of entities."""
    answer = watch.prometheus.query(name)
    return {(labels["quota_type"], labels["user"], labels["client_id"]): value for labels, value in answer}


def _read(exporter: Exporter, watch: Watch, kafka: Cluster, began_at: float) -> Reading:
    def page(path: str, **query: str) -> str:
        answer = exporter.get(f"{path}?{urlencode(query)}")
        assert answer.status == 200, answer.text
        return answer.text

    def api(path: str, **query: str) -> Any:
        return json.loads(page(f"/api/v1/{path}", **query))

    def command(*words: str) -> str:
        return run(*words, "--exporter", exporter.url).stdout

    # first, as these series forget within seconds whom nothing throttles on a busy machine
    recorded = {name: _recorded(watch, name) for name in RECORDED}
    alerts = watch.prometheus.get("alerts")["alerts"]
    entities = {client.words: client.entity[1:] for client in CLIENTS} | {"client-id admin": ("", "admin")}
    pages, explained, in_terminal = dict[Entity, Any](), dict[str, Any](), dict[str, str]()
    explained_rows = dict[Entity, Any]()
    for client in CLIENTS:
        sent = {"user": client.entity[1] or "ANONYMOUS", "client_id": client.client_id}
        pages |= of_tables(page("/entity", **sent))
        explained[client.name] = api("explain", **sent)
        explained_rows |= of_documents(explained[client.name]["entities"])
        in_terminal[client.name] = command("explain", "--user", sent["user"], "--client-id", client.client_id)
    rows: Mapping[str, Rows] = {
        "metrics": of_metrics(exporter.page()),
        "API: entities": of_documents(api("entities")["entities"]),
        "API: explain": explained_rows,
        "overview": of_tables(page("/")),
        "entity page": pages,
        "status": of_terminal(command("status"), entities),
        "status --json": of_documents(json.loads(command("status", "--json"))["entities"]),
        "top": of_terminal(command("top"), entities),
        "top --json": of_documents(json.loads(command("top", "--json"))["entities"]),
        "alerts": of_alerts(alerts, {client.alert_rule: client.rule for client in CLIENTS}),
    }
    raised = (f"producer_byte_rate={RAISED}", "--user", "alice", "--client-id", "eager")
    plan = ("quotas", "set", *raised, "--bootstrap-servers", kafka.admin)
    shadow = run("shadow", "status", "--json", "--exporter", exporter.url)
    return Reading(
        rows=rows,
        rules=api("rules")["rules"],
        rules_page=of_rules(page("/rules")),
        explained=explained,
        explained_in_terminal=in_terminal,
        episodes=api("episodes")["episodes"],
        alerts=alerts,
        recorded=recorded,
        plan=json.loads(command(*plan, "--json")),
        plan_in_terminal=command(*plan),
        shadows=json.loads(shadow.stdout)["shadows"],
        shadow_exit_code=shadow.returncode,
        terminal_counts=command("top").splitlines()[0],
        page_counts=re.sub(r"<[^>]*>", "", page("/")),
        began_at=began_at,
        read_at=time.time(),
    )


def similar(value: float, other: float) -> bool:
    """
    Return whether two values are within a factor of two.

    Windows of seconds on one side, the whole time on the other.
    """
    return other / 2 <= value <= other * 2


@pytest.mark.parametrize("client", SILENT, ids=str)
def test_the_silent_clients_are_muted_most_of_the_time_by_short_throttles(scene: Scene, client: Client) -> None:
    """The clients' own counts show that silent clients are muted most of the time by short throttles."""
    assert scene.mean_throttle(client) < 1
    assert sum(scene.loads[client.name].throttles_ms) / 1000 > scene.seconds[client.name] / 2


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_clients_counted_what_the_scene_says(scene: Scene, client: Client) -> None:
    assert scene.loads[client.name].throttled == client.throttled


@pytest.mark.parametrize("surface", ROWS)
def test_who_is_throttled(scene: Scene, surface: str) -> None:
    """All surfaces show exactly the clients that counted throttles, each by its own entity."""
    throttled = {entity for entity, row in scene.said.rows[surface].items() if row.throttle_seconds}
    # an alert is on the cause, not on each entity that shows it
    forwarded = set[Entity]() if surface == "alerts" else {REQUESTS_OF_MUTATOR}
    assert throttled == {client.entity for client in CLIENTS if scene.loads[client.name].throttled} | forwarded


@pytest.mark.parametrize("client", THROTTLED, ids=str)
@pytest.mark.parametrize("surface", ROWS)
def test_by_which_rule(scene: Scene, surface: str, client: Client) -> None:
    """All surfaces show the rule that was set for the client."""
    assert scene.said.rows[surface][client.entity].rule == client.rule


@pytest.mark.parametrize("surface", OF_ENTITIES)
def test_the_forwarded_requests_refer_to_the_rule_that_throttles_them(scene: Scene, surface: str) -> None:
    """The cause of forwarded requests is the mutation rule, not the request quota, which they hardly use."""
    row = scene.said.rows[surface][REQUESTS_OF_MUTATOR]
    assert row.rule == OF_MUTATIONS + MUTATOR.rule
    assert row.used < 0.1
    assert similar(row.throttle_seconds, scene.mean_throttle(MUTATOR))


@pytest.mark.parametrize("client", THROTTLED, ids=str)
@pytest.mark.parametrize("surface", ROWS)
def test_for_how_long_a_request_is_throttled(scene: Scene, surface: str, client: Client) -> None:
    """The throttle time on all surfaces is the client's own mean."""
    seconds = scene.said.rows[surface][client.entity].throttle_seconds
    assert similar(seconds, scene.mean_throttle(client)), (
        f"{seconds} s; the client counted {scene.mean_throttle(client)} s"
    )


@pytest.mark.parametrize("client", THROTTLED, ids=str)
@pytest.mark.parametrize("surface", ROWS)
def test_how_much_of_the_limit_is_used(scene: Scene, surface: str, client: Client) -> None:
    """The used part of a limit equals the bytes that the client sent or read."""
    share = scene.said.rows[surface][client.entity].used
    assert similar(share, scene.used(client)), f"{share}; the client counted {scene.used(client)}"


@pytest.mark.parametrize("surface", OF_ENTITIES)
def test_a_client_near_its_limit_is_not_throttled(scene: Scene, surface: str) -> None:
    row = scene.said.rows[surface][NEAR.entity]
    assert (row.throttle_seconds, row.rule) == (0, NEAR.rule)
    assert row.used < 1
    assert similar(row.used, scene.used(NEAR))


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_rules_count_whom_they_throttle(scene: Scene, client: Client) -> None:
    """The page and the API count the same throttled clients for a rule."""
    (rule,) = (candidate for candidate in scene.said.rules if candidate["rule"] == client.rule)
    throttled = int(client.throttled)
    assert (rule["entities"], rule["throttled"], rule["value"]) == (1, throttled, client.limit)
    assert scene.said.rules_page[client.entity[0], client.rule] == ("1", str(throttled))


def test_the_request_quota_of_forwarded_requests_throttles_no_entity(scene: Scene) -> None:
    (rule,) = (candidate for candidate in scene.said.rules if candidate["rule"] == "8 client-id <default>")
    assert rule["throttled"] == 0
    assert scene.said.rules_page["request", "8 client-id <default>"][1] == "0"


def test_an_idle_rule_is_said_to_be_idle(scene: Scene) -> None:
    """The page and the API report a rule without usage as idle."""
    (rule,) = (candidate for candidate in scene.said.rules if candidate["rule"] == IDLE)
    assert (rule["entities"], rule["throttled"], rule["utilization"]) == (0, 0, None)
    assert scene.said.rules_page["produce", IDLE] == ("none", "-")


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_explain_names_the_rule_that_applies(scene: Scene, client: Client) -> None:
    """The API and the terminal name the rule that applies to the client."""
    quota_type = client.entity[0]
    (quota,) = (
        candidate for candidate in scene.said.explained[client.name]["quotas"] if candidate["quota_type"] == quota_type
    )
    assert (quota["decision"]["rule"], quota["decision"]["configured"]) == (client.rule, client.limit)
    line = f"{quota_type.replace('_', ' ')}: {client.rule} applies, {client.limit:,.10g} "
    assert line in scene.said.explained_in_terminal[client.name]


@pytest.mark.parametrize("client", THROTTLED, ids=str)
def test_since_when(scene: Scene, client: Client) -> None:
    """The episode began after the client did, by its rule, and no throttle is longer than the client was told."""
    (episode,) = (
        episode
        for episode in scene.said.episodes
        if (episode["quota_type"], episode["user"], episode["client_id"]) == client.entity
    )
    assert (episode["ongoing"], episode["rule"]["name"]) == (True, client.rule)
    assert scene.said.began_at < episode["began_at"] < scene.said.read_at
    longest = max(scene.loads[client.name].throttles_ms) / 1000
    assert scene.mean_throttle(client) / 2 < episode["throttle_time_seconds"] <= longest


def test_episodes_are_of_throttled_clients_alone(scene: Scene) -> None:
    entities = {(episode["quota_type"], episode["user"], episode["client_id"]) for episode in scene.said.episodes}
    assert entities == {client.entity for client in THROTTLED} | {REQUESTS_OF_MUTATOR}


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_recorded_series_have_the_throttled_clients(scene: Scene, client: Client) -> None:
    """Clients that are throttled for most of the time are persistently throttled."""
    persistent = scene.said.recorded["entity:kafka_quota_throttled:persistent"]
    share = scene.said.recorded["entity:kafka_quota_throttled:share15m"]
    assert (client.entity in persistent) == client.throttled
    assert (share.get(client.entity, 0) > 0.5) == client.throttled


def test_recorded_series_count_the_throttled_clients(scene: Scene) -> None:
    """The entity with the forwarded requests is not counted as another client."""
    assert scene.said.recorded["entity:kafka_quota_throttled:persistent"].keys() == {
        client.entity for client in THROTTLED
    }
    (count,) = scene.said.recorded["cluster:kafka_quota_throttled_entities:count"].values()
    assert count == len(THROTTLED)


def test_every_count_of_throttled_clients_is_the_same(scene: Scene) -> None:
    """The page and the terminal count a client once, however many rows it has."""
    assert f"clients throttled lately{len(THROTTLED)}close to" in "".join(scene.said.page_counts.split("\n"))
    assert f", {len(THROTTLED)} clients throttled lately; " in scene.said.terminal_counts


@pytest.mark.parametrize("client", SILENT, ids=str)
def test_silent_clients_have_their_alert(scene: Scene, client: Client) -> None:
    (alert,) = (
        candidate
        for candidate in scene.said.alerts
        if (
            candidate["labels"].get("quota_type"),
            candidate["labels"].get("user"),
            candidate["labels"].get("client_id", ""),
        )
        == client.entity
        and "shadow" not in candidate["labels"]
    )
    assert alert["state"] in {"pending", "firing"}
    match = re.search(r" on broker 1 since (\d\d:\d\d) UTC", alert["annotations"]["description"])
    assert match
    moments = (*range(int(scene.said.began_at), int(scene.said.read_at), 30), scene.said.read_at)
    assert match[1] in {time.strftime("%H:%M", time.gmtime(moment)) for moment in moments}


def test_no_alert_is_on_who_is_not_throttled(scene: Scene) -> None:
    """No alert names a client that is not throttled, except for alerts on shadows."""
    labels = [alert["labels"] for alert in scene.said.alerts if "shadow" not in alert["labels"]]
    clients = {(alert.get("user", ""), alert.get("client_id", "")) for alert in labels}
    assert clients - {("", "")} == {client.entity[1:] for client in THROTTLED}, labels


def test_a_raised_limit_of_a_client_that_is_held_back_is_a_bound(scene: Scene) -> None:
    """The terminal and JSON show at least what it uses now."""
    (affected,) = scene.said.plan["affected"]
    assert (affected["user"], affected["client_id"], affected["held_back"]) == ("alice", "eager", True)
    assert similar(affected["new_utilization"], SMALL_BATCHES.limit / RAISED)
    match = re.search(r"≥ (\d+)%, held back now", scene.said.plan_in_terminal)
    assert match
    assert similar(int(match[1]) / 100, SMALL_BATCHES.limit / RAISED)


def test_the_bound_holds_when_the_limit_is_raised(scene: Scene) -> None:
    """A held-back client uses more under the raised limit than the predicted lower bound."""
    (affected,) = scene.said.plan["affected"]
    assert scene.raised > SMALL_BATCHES.limit / RAISED
    assert scene.raised > affected["new_utilization"] / 2


@pytest.mark.parametrize("shadow", CHANGES)
def test_a_shadow_says_what_would_change(scene: Scene, shadow: str) -> None:
    """A throttle that is the same under the shadow is no change."""
    (result,) = (candidate for candidate in scene.said.shadows if candidate["name"] == shadow)
    changes = {
        (entity["quota_type"], entity["user"], entity["client_id"]): entity["change"]
        for entity in result["entities"]
        if entity["change"] is not None
    }
    forwarded = {REQUESTS_OF_MUTATOR: "unchanged"} if REQUESTS_OF_MUTATOR in changes else {}
    assert changes == dict.fromkeys((client.entity for client in THROTTLED), "unchanged") | forwarded | CHANGES[shadow]


def test_shadows_would_throttle_longer(scene: Scene) -> None:
    """The exit code and an alert show each client that one of them would throttle newly or longer, and no other."""
    assert scene.said.shadow_exit_code == 3
    alerts = {
        (candidate["labels"]["shadow"], candidate["labels"]["quota_type"], candidate["labels"]["user"])
        for candidate in scene.said.alerts
        if candidate["labels"]["alertname"] == "KafkaQuotaShadowThrottlesClient"
    }
    assert alerts == {("tighter", *client.entity[:2]) for client in (SMALL_BATCHES, NEAR)}
