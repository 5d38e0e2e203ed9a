"""An engine in this process, read like any other source."""

import pytest
from tests.exporter.nodes import LimitedRate, connections, remote_storage, replication
from tests.exporter.recorded import pairs, read
from tests.strategies import EPOCH_MS

from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.join.join import Join
from quotascope.exporter.join.placing import meaning_of
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.mapping import BeanTable, Meaning
from quotascope.exporter.snapshot import LimitsHealth
from quotascope.metrics.catalog import Family
from quotascope.metrics.engine.extras.all_time import CumulativeCount
from quotascope.metrics.engine.extras.connection_quotas import ConnectionQuotas
from quotascope.metrics.engine.extras.replication_quotas import ReplicationQuotas
from quotascope.metrics.engine.extras.tiered_storage import RLMQuotaManager, RLMQuotaMetrics
from quotascope.metrics.engine.quota_callback import QuotaCallback
from quotascope.metrics.engine.quota_factory import QuotaConfig, QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.node_quota_types import RLMQuotaType
from quotascope.metrics.kafka.principal import Principal

Numbers = dict[tuple[QuotaType, str, str, Meaning | Family], float]
SVC = Principal("svc:team a")


class Engine:
    def __init__(self) -> None:
        self.now_ms = EPOCH_MS
        self.registry = Registry(tags={"app": "billing"})  # distinguish no entities
        self.quotas = QuotaManagers(self.registry, EPOCH_MS)
        self.source = EmbeddedSource("engine", self.registry, "1", lambda: self.now_ms)

    async def numbers(self) -> Numbers:
        return entities(await self.source.read())


def entities(table: BeanTable) -> Numbers:
    """Return the numbers of entities, in Kafka's units."""
    meanings_and_values = ((meaning_of(column), value) for column, value in pairs(table))
    return {
        (*meaning.tags, meaning.attribute.meaning): value
        for meaning, value in meanings_and_values
        if meaning is not None and meaning.tags is not None
    }


@pytest.fixture
def engine() -> Engine:
    return Engine()


async def test_usage_and_throttle_times_are_read(engine: Engine) -> None:
    """The source reads the metrics that Kafka has; and leaves others of its library out."""
    produce = engine.quotas.produce
    produce.update_quota(QuotaEntity("svc:team a"), 1_000.0)
    throttle = produce.record_and_get_throttle_time(SVC, "c", 30_000.0, EPOCH_MS)
    sensor = produce.sensors_for(SVC, "c", EPOCH_MS).throttle_time
    tags = sensor.metrics()[0].name.tags
    sensor.add(engine.registry.metric_name("throttles", "Produce", tags), CumulativeCount())
    produce.throttle(SVC, "c", throttle, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0)
    entity = (QuotaType.PRODUCE, "svc:team a", "")
    numbers = await engine.numbers()
    assert numbers[*entity, Meaning.USAGE] == 3_000.0
    assert numbers[*entity, Meaning.THROTTLE_TIME] == throttle == 20_000
    await engine.source.close()  # the registry is another library's
    table = await engine.source.read()
    assert table.node_id == "1"
    assert {column.bean.get("type") for column in table.layout.columns} == {kind.group for kind in QuotaType}
    assert {column.attribute for column in table.layout.columns}.isdisjoint({"count", "throttles"})


async def test_tokens_are_read(engine: Engine) -> None:
    """The source reads the tokens of a limited entity, which a refusal leaves alone."""
    mutations = engine.quotas.controller_mutation
    mutations.update_quota(QuotaEntity("bob"), 2.0)
    for partitions in (30.0, 5.0):
        mutations.record_and_get_throttle_time(Principal("bob"), "admin", partitions, EPOCH_MS)
    entity = (QuotaType.CONTROLLER_MUTATION, "bob", "")
    numbers = await engine.numbers()
    assert numbers[*entity, Meaning.TOKENS] == -8.0


async def test_the_layout_stays_while_the_metrics_do(engine: Engine) -> None:
    """The layout stays the same while the metrics do, and only numbers change."""
    engine.quotas.fetch.update_quota(QuotaEntity("a"), 10.0)
    engine.quotas.fetch.record_no_throttle(Principal("a"), "", 1.0, EPOCH_MS)
    first_table = await engine.source.read()
    engine.quotas.fetch.record_no_throttle(Principal("a"), "", 1.0, EPOCH_MS)
    second = await engine.source.read()
    assert second.layout is first_table.layout
    assert second.values != first_table.values
    engine.quotas.fetch.record_no_throttle(Principal("b"), "", 1.0, EPOCH_MS)
    third = await engine.source.read()
    assert third.layout is not first_table.layout
    assert set(map(id, first_table.layout.columns)) < set(map(id, third.layout.columns))


async def test_further_beans_are_read(engine: Engine) -> None:
    """
    Numbers that a program counts beside its quotas come under Kafka's names.

    Their columns stay when another bean appears.
    """
    throttle = "kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request=%s"
    beans = {throttle % "Fetch": {"Mean": 250.0, "Count": 4.0}}
    source = EmbeddedSource("engine", engine.registry, "1", lambda: 0, lambda: beans)
    first_table = await source.read()
    beans[throttle % "Produce"] = {"Count": 1.0}
    beans[throttle % "Fetch"]["Count"] = 5.0
    second = await source.read()
    assert [
        (column.bean.get("request"), column.attribute, value)
        for column, value in pairs(second)
        if column.bean.get("type") == "RequestMetrics"
    ] == [("Fetch", "Mean", 250.0), ("Fetch", "Count", 5.0), ("Produce", "Count", 1.0)]
    assert set(map(id, first_table.layout.columns)) < set(map(id, second.layout.columns))
    assert (await source.read()).layout is second.layout


async def test_reading_does_not_change_what_the_engine_decides(engine: Engine) -> None:
    """Kafka's JMX reads move windows; an exporter in the process must not change throttles."""
    watched, alone = engine, Engine()
    for program in (watched, alone):
        program.quotas.produce.update_quota(QuotaEntity("a"), 100.0)
    throttles = []
    for step in range(40):
        watched.now_ms = EPOCH_MS + 777 * step
        await watched.source.read()
        throttles.append(
            [
                program.quotas.produce.record_and_get_throttle_time(
                    Principal("a"), "", 90.0, EPOCH_MS + 777 * step + 333
                )
                for program in (watched, alone)
            ]
        )
    assert all(read_engine == right for read_engine, right in throttles)
    assert any(read_engine > 0 for read_engine, _ in throttles)


async def test_the_quotas_beside_those_of_clients_are_read(engine: Engine) -> None:
    """Quotas of connections, replication and remote storage are read from an engine that has them."""
    quotas = ConnectionQuotas(engine.registry, EPOCH_MS)
    quotas.add_listener("SASL", EPOCH_MS)
    quotas.update_ip_rate("::1", 1)
    for _ in range(10):
        quotas.accept("SASL", EPOCH_MS)
        quotas.admit("SASL", "::1", EPOCH_MS)
    ReplicationQuotas(engine.registry, 1).leader.record(1000, EPOCH_MS)
    RLMQuotaManager(engine.registry, RLMQuotaType.COPY).record(500, EPOCH_MS)
    RLMQuotaMetrics(engine.registry, RLMQuotaType.COPY).record(7, EPOCH_MS)
    engine.now_ms += 1
    reads = [read(await engine.source.read())]
    (node,) = Join().snapshot(reads, None, LimitsHealth(), 0.0).nodes
    assert connections(node).broker.rate == pytest.approx(1.0, rel=1e-3)
    assert connections(node).listeners["SASL"].rate == pytest.approx(1.0, rel=1e-3)
    assert list(connections(node).ips) == ["0:0:0:0:0:0:0:1"]
    assert replication(node) == {"leader": LimitedRate(rate=1000.0)}
    assert remote_storage(node)["copy"] == LimitedRate(rate=500.0, throttle_time_seconds=0.007)


async def test_rules_and_settings_of_an_engine() -> None:
    """An engine's present rules are read in Kafka's units, or the callback that decides instead."""
    config = QuotaConfig(client=ManagerConfig(samples=7), controller=ManagerConfig(samples=5, window_seconds=2))
    quotas = QuotaManagers(Registry(), EPOCH_MS, config, QuotaCallback())
    source = EmbeddedLimits(quotas, "7", lambda: EPOCH_MS, request_capacity_threads=4.0)
    alice = QuotaEntity("alice")
    quotas.update_quota(QuotaType.REQUEST, alice, 50.0)
    limits = await source.read()
    quotas.update_quota(QuotaType.REQUEST, alice, None)
    assert dict(limits.rules[QuotaType.REQUEST]) == {alice: 50.0}
    assert limits.active_controller == "7"
    assert limits.read_at == EPOCH_MS / 1000
    assert limits.nodes["7"] == NodeSettings(
        request_capacity_threads=4.0,
        quota_samples=7,
        controller_quota_samples=5,
        controller_quota_window_seconds=2.0,
        quota_callback_class="QuotaCallback",
    )
    assert len((await source.read()).rules[QuotaType.REQUEST]) == 0
    await source.close()
