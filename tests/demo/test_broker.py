"""The demo's broker charges the real quotas and mutes as they say."""

import pytest

from quotascope.demo.broker import Broker, DemoConnection
from quotascope.demo.cast import Call, CreateTopics, Fetch, Produce, Response
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

START_MS = 1_700_000_000_000
QUANTILES = "50thPercentile", "95thPercentile", "99thPercentile"
ALICE = QuotaEntity("alice", None)


class Setup:
    """A broker with one quota for alice, and her connection."""

    def __init__(self, quota_type: QuotaType, bound: float) -> None:
        self.registry = Registry()
        self.managers = QuotaManagers(self.registry, START_MS)
        self.managers.update_quota(quota_type, ALICE, bound)
        self.broker = Broker(self.managers, START_MS)
        self.connection = DemoConnection("alice", "app")

    def ask(self, request: Produce | Fetch | CreateTopics | Call, thread_ms: float = 0.0) -> Response:
        return self.broker.handle(self.connection, request, thread_ms, START_MS)

    def value(self, group: str, name: str) -> float:
        tags = {"user": "alice", "client-id": ""}
        metric = self.registry.metric(self.registry.metric_name(name, group, tags))
        assert metric is not None
        return metric.value(START_MS)


@pytest.mark.parametrize(
    ("quota_type", "bound", "message", "response", "metric", "value"),
    [
        (QuotaType.PRODUCE, 1_000.0, Produce(size=10_000), Response(), "byte-rate", 1_000.0),
        # 1,200 B/s against 1,000: (1200 - 1000) / 1000 x 10 s of silence
        (QuotaType.PRODUCE, 1_000.0, Produce(size=12_000), Response(throttle_ms=2_000), "throttle-time", 2_000.0),
        # cut to what the quota allows in ten windows, or it could never succeed
        (QuotaType.FETCH, 1_000.0, Fetch(size=1_000_000), Response(), "byte-rate", 1_000.0),
        # never muted for longer than one window (KIP-124)
        (QuotaType.REQUEST, 1.0, Call(), Response(throttle_ms=1_000), "throttle-time", 1_000.0),
        # the topic that overdraws the bucket of 11 is made, the one after it refused with error 89
        (
            QuotaType.CONTROLLER_MUTATION,
            1.0,
            CreateTopics(partitions=(8, 5, 4)),
            Response(throttle_ms=2_000, again=CreateTopics(partitions=(4,))),
            "tokens",
            -2.0,
        ),
        # before version 6 every topic is made and the client waits afterwards
        (
            QuotaType.CONTROLLER_MUTATION,
            1.0,
            CreateTopics(partitions=(8, 5, 4), version=5),
            Response(throttle_ms=6_000),
            "tokens",
            -6.0,
        ),
    ],
    ids=["within the quota", "produce", "fetch", "request time", "mutations", "mutations of an old client"],
)
def test_one_request(
    quota_type: QuotaType,
    bound: float,
    message: Produce | Fetch | CreateTopics | Call,
    response: Response,
    metric: str,
    value: float,
) -> None:
    """
    A request's answer has its throttle, the refused part and a metric.

    A channel that is not throttled is read again at once.
    """
    setup = Setup(quota_type, bound)
    assert setup.ask(message, thread_ms=900.0) == response
    assert setup.value(quota_type.group, metric) == value
    assert setup.connection.is_read is (response.throttle_ms == 0)


def test_channel_is_read_again_when_the_throttle_is_over() -> None:
    """The channel stays muted to the last millisecond of the throttle."""
    setup = Setup(QuotaType.PRODUCE, 1_000.0)
    setup.ask(Produce(size=12_000))
    setup.broker.reap(START_MS + 1_999)
    assert not setup.connection.is_read
    setup.broker.reap(START_MS + 2_000)
    assert setup.connection.is_read


def test_fetch_over_the_quota_is_held_back() -> None:
    """A fetch over the quota is answered empty, not counted, and has to be asked for again."""
    setup = Setup(QuotaType.FETCH, 1_000.0)
    assert setup.ask(Fetch(size=8_000)) == Response()
    request = Fetch(size=4_000)
    assert setup.broker.handle(setup.connection, request, 0.0, START_MS) == Response(throttle_ms=2_000, again=request)
    assert setup.value("Fetch", "byte-rate") == 800.0


def test_the_idle_ratio_of_handler_threads_is_one_of_the_last_minute() -> None:
    """The idle ratio is unknown before the first tick of 5 s, and each tick then counts for 8 % of it."""
    setup = Setup(QuotaType.PRODUCE, 1_000.0)
    handlers = "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"
    setup.ask(Produce(size=10), thread_ms=4_000.0)
    setup.broker.reap(START_MS + 4_999)
    assert "OneMinuteRate" not in setup.broker.beans()[handlers]
    setup.broker.reap(START_MS + 5_000)  # one of four threads was held for 4 s of 5
    assert setup.broker.beans()[handlers]["OneMinuteRate"] == pytest.approx(0.8)
    setup.broker.reap(START_MS + 10_000)
    assert setup.broker.beans()[handlers]["OneMinuteRate"] == pytest.approx(0.8 + 0.2 * 0.07996, rel=1e-4)


def test_requests_and_refusals_are_counted_as_kafka_does() -> None:
    """
    Throttle and queue times are counted by request in histograms, each refused topic as an error.

    Event queue and handler threads are measured.
    """
    setup = Setup(QuotaType.CONTROLLER_MUTATION, 1.0)
    setup.ask(CreateTopics(partitions=(8, 5, 4, 4)), thread_ms=20.0)
    for thread_ms in (20.0, 8.0, 8.0, 8.0):
        setup.connection = DemoConnection("alice", "app")
        setup.ask(CreateTopics(partitions=(4,)) if thread_ms > 8 else Fetch(size=10), thread_ms)
    setup.broker.reap(START_MS + 10)
    of_request = "kafka.network:type=RequestMetrics,name=%s,request=%s"
    errors = of_request % ("ErrorsPerSec", "CreateTopics")
    assert setup.broker.beans() == {
        of_request % ("ThrottleTimeMs", "CreateTopics"): {"Mean": 2_000, "Count": 2},
        of_request % ("ThrottleTimeMs", "Fetch"): {"Mean": 0, "Count": 3},
        of_request % ("RequestQueueTimeMs", "CreateTopics"): dict.fromkeys(QUANTILES, 0),
        # two threads are held for 20 ms, the others for 8
        of_request % ("RequestQueueTimeMs", "Fetch"): {**dict.fromkeys(QUANTILES, 8), "50thPercentile": 0},
        # of 10 ms of 4 threads, 2 x 10 and 8 and 10 were held
        "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent": {"Count": 500_000},
        f"{errors},error=THROTTLING_QUOTA_EXCEEDED": {"Count": 3},
        "kafka.controller:type=KafkaController,name=ActiveControllerCount": {"Value": 1},
        "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs": {"Mean": 10, "Count": 2},
    }
