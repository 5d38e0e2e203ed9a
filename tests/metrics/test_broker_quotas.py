"""A broker's work for each response, and the quota that throttles it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import ALICE, OF_ALICE, RULE, metric_of
from tests.metrics.examples import NANOS_PER_MS as MS
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.broker_quotas import BrokerQuotas, ClientRequest, Instant
from quotascope.metrics.engine.channel import Channel, ChannelThrottle, MuteState
from quotascope.metrics.engine.combination import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)
from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX

NOW = Instant(ms=EPOCH_MS, ns=0)
UNDER_CLIENT = {"user": "", "client-id": "c"}
PRODUCE, FETCH, REQUEST, MUTATION = (
    QuotaType.PRODUCE,
    QuotaType.FETCH,
    QuotaType.REQUEST,
    QuotaType.CONTROLLER_MUTATION,
)


class Broker:
    """A broker with one connection of alice."""

    def __init__(self, **bounds: float) -> None:
        self.registry = Registry()
        self.managers = QuotaManagers(self.registry, EPOCH_MS)
        for quota_type in QuotaType:
            bound = bounds.get(quota_type.label)
            self.managers.update_quota(quota_type, RULE, bound)
        self.quotas = BrokerQuotas(self.managers)
        self.channel = Channel()

    def request(self, busy_ms: int = 0, *, forwarded: bool = False) -> ClientRequest:
        self.channel.request_received()
        return ClientRequest(
            principal=ALICE,
            client_id="c",
            channel=ChannelThrottle(self.channel),
            thread_time_ns=busy_ms * MS,
            forwarded=forwarded,
        )

    def value(self, name: str, group: str, tags: dict[str, str] | None = None) -> float:
        return metric_of(self.registry, name, group, tags).value(EPOCH_MS)


def muted(decision: Decision) -> tuple[QuotaType | None, int, int]:
    """Return the muting quota, its throttle time, and that of the response."""
    return decision.throttled_by, decision.throttle_time_ms, decision.response_ms


class TestProduce:
    """Data that has been written already."""

    def test_a_whole_throttle(self) -> None:
        """The response leaves at once with the time, and the channel is read again when it is over."""
        broker = Broker(produce=1000.0)
        decision = broker.quotas.produce(broker.request(), 20_000, NOW, acks=-1)
        assert muted(decision) == (PRODUCE, 10_000, 10_000)
        assert not broker.channel.response_sent()
        assert broker.managers.reap(EPOCH_MS + 9_999, 9_999 * MS) == 0
        assert broker.channel.state is MuteState.MUTED_AND_THROTTLED
        assert broker.managers.reap(EPOCH_MS + 10_000, 10_000 * MS) == 1
        assert broker.channel.maybe_unmute()

    def test_longer_through_request(self) -> None:
        """The longer of the two throttles is applied, and only its manager records it."""
        broker = Broker(produce=1000.0, request=1.0)
        decision = broker.quotas.produce(broker.request(150), 10_100, NOW, acks=1)
        assert muted(decision) == (REQUEST, 1000, 1000)
        assert broker.value("throttle-time", "Request") == 1000.0
        assert math.isnan(broker.value("throttle-time", "Produce"))

    def test_without_acks(self) -> None:
        """Thread time without a response is exempt, and bytes mute the channel; a closed channel counts nothing."""
        closed = Broker(request=0.001)
        closed.quotas.produce(closed.request(3_000), 1, NOW, acks=0, failed=True)
        assert closed.value("exempt-request-time", "Request", {}) == 0.0
        broker = Broker(produce=1000.0, request=0.001)
        decision = broker.quotas.produce(broker.request(3_000), 20_000, NOW, acks=0)
        assert muted(decision) == (PRODUCE, 10_000, 10_000)
        assert broker.value("exempt-request-time", "Request", {}) == 10.0
        assert broker.registry.metric(broker.registry.metric_name("request-time", "Request", OF_ALICE)) is None


class TestFetch:
    """Data that is held back."""

    @pytest.mark.parametrize(
        ("size", "throttled", "rate"), [(5_000, (None, 0, 0), 500.0), (20_000, (FETCH, 10_000, 10_000), 0.0)]
    )
    def test_against_the_quota(self, size: int, throttled: tuple[QuotaType | None, int, int], rate: float) -> None:
        """Within the bound data is sent and counted; beyond it the response is empty, and the bytes are given back."""
        broker = Broker(fetch=1000.0)
        decision = broker.quotas.fetch(broker.request(), size, NOW)
        assert muted(decision) == throttled
        assert decision.unrecord_fetch == (throttled[0] is FETCH)
        assert broker.value("byte-rate", "Fetch") == rate

    def test_throttled_for_its_thread_time(self) -> None:
        """A Fetch throttled for its thread time without a Fetch quota makes the byte rate negative, as in Kafka."""
        broker = Broker(request=1.0)
        decision = broker.quotas.fetch(broker.request(200), 5_000, NOW)
        assert muted(decision) == (REQUEST, 1000, 1000)
        assert broker.value("byte-rate", "Fetch", UNDER_CLIENT) == -500.0

    @pytest.mark.parametrize(
        ("bounds", "asked", "most"),
        [
            ({"fetch": 1000.0}, 50_000, 10_000),
            ({"fetch": 1000.0}, 500, 500),
            ({}, INT_MAX, INT_MAX),
            ({"fetch": math.nan}, 500, 0),
        ],
    )
    def test_most_bytes(self, bounds: dict[str, float], asked: int, most: int) -> None:
        """A fetch reads at most what fits into full windows and what it asks for; a quota of NaN allows nothing."""
        broker = Broker(**bounds)
        assert broker.quotas.max_fetch_bytes(broker.request(), asked, NOW) == most


class TestOther:
    """Tests of all other APIs of clients, and of mutations on one node and through an envelope."""

    def test_forwarded(self) -> None:
        """A node that gets a forwarded request reports the throttle time and mutes no client."""
        broker = Broker(request=1.0)
        decision = broker.quotas.other(broker.request(200, forwarded=True), NOW)
        assert muted(decision) == (None, 0, 1000)
        assert broker.channel.response_sent()

    def test_direct(self) -> None:
        """A client connected to the controller is muted there for the mutation."""
        broker = Broker(controller_mutation=10.0)
        quota = broker.managers.controller_mutation.quota_for(ALICE, "c", MutationApi.CREATE_TOPICS, 5, EPOCH_MS)
        quota.record(115, EPOCH_MS)
        decision = broker.quotas.controller(broker.request(), quota, NOW)
        assert muted(decision) == (MUTATION, 500, 500)
        assert broker.value("throttle-time", "ControllerMutation") == 500.0

    def test_kraft_hides_it_in_request(self) -> None:
        """The controller refuses and reports, the broker mutes and shows it as a Request throttle."""
        controller, broker = Broker(controller_mutation=10.0), Broker()
        quota = controller.managers.controller_mutation.quota_for(ALICE, "c", MutationApi.CREATE_TOPICS, 7, EPOCH_MS)
        quota.record(120, EPOCH_MS)
        with pytest.raises(ThrottlingQuotaExceeded):
            quota.record(5, EPOCH_MS)
        reported = controller.quotas.controller(controller.request(forwarded=True), quota, NOW)
        assert muted(reported) == (None, 0, 1000)
        decision = broker.quotas.forwarded_response(broker.request(), reported.response_ms, NOW)
        assert muted(decision) == (REQUEST, 1000, 1000)
        assert math.isnan(controller.value("throttle-time", "ControllerMutation"))
        assert controller.value("tokens", "ControllerMutation") == -10.0
        assert broker.value("throttle-time", "Request", UNDER_CLIENT) == 1000.0


times = st.integers(-INT_MAX - 1, INT_MAX)


def mute(by: QuotaType, ms: int) -> Decision:
    return Decision(throttled_by=by, throttle_time_ms=ms, response_ms=ms)


def test_a_time_that_wrapped_around_is_none() -> None:
    """A time that wrapped around is no throttle, alone or beside another quota's; tests/conformance has other times."""
    decisions = [combine_produce(-1_294_977_296, request_ms, acks=1) for request_ms in (0, 7)]
    assert decisions == [Decision(), mute(REQUEST, 7)]


@pytest.mark.parametrize(
    ("request_ms", "forwarded", "unauthorized", "expected"),
    [
        (0, False, False, Decision()),
        (9, False, False, mute(REQUEST, 9)),
        (9, True, False, Decision(response_ms=9)),
        (9, True, True, mute(REQUEST, 9)),
        (0, True, True, Decision()),
    ],
)
def test_request(request_ms: int, *, forwarded: bool, unauthorized: bool, expected: Decision) -> None:
    """A forwarded request is only reported, unless the cluster authorization failed."""
    failed = {"cluster_authorization_failed": True} if unauthorized else {}
    assert combine_request(request_ms, forwarded=forwarded, **failed) == expected


@given(own=times, request_ms=times, forwarded=st.booleans())
def test_no_manager_without_a_positive_time(*, own: int, request_ms: int, forwarded: bool) -> None:
    """A channel is muted exactly for a positive time, and the response says so."""
    for decision in (
        combine_produce(own, request_ms, acks=1),
        combine_fetch(own, request_ms),
        combine_request(request_ms, forwarded=forwarded),
        combine_controller(own, request_ms, forwarded=forwarded),
        combine_forwarded_response(own, request_ms),
    ):
        muted = decision.throttled_by is not None
        assert muted == (decision.throttle_time_ms > 0)
        assert not muted or decision.response_ms == decision.throttle_time_ms


def exempt_percent(registry: Registry) -> float:
    return metric_of(registry, "exempt-request-time", "Request", {}).value(EPOCH_MS)


@pytest.mark.parametrize("seconds", [1, 3])
def test_never_longer_than_a_window(registry: Registry, seconds: int) -> None:
    """A request of any cost mutes its client for one window at most."""
    config = ManagerConfig(window_seconds=seconds)
    manager = RequestQuotaManager(registry, EPOCH_MS, config)
    manager.update_quota(RULE, 0.01)
    hour_ns = 3_600_000 * MS
    throttle = manager.maybe_record_request(ALICE, "c", hour_ns, EPOCH_MS)
    assert throttle == seconds * 1000


def test_one_busy_thread_is_100_percent(registry: Registry) -> None:
    """Thread time is measured in percent of one thread, the network thread's included."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    manager.update_quota(RULE, 1e6)
    manager.maybe_record_request(ALICE, "c", 6_000 * MS, EPOCH_MS)
    manager.record_network_thread_time(ALICE, "c", 4_000 * MS, EPOCH_MS)
    metric = manager.sensors_for(ALICE, "c", EPOCH_MS).quota.metrics()[0]
    assert metric.name.name == "request-time"
    assert metric.name.description == "Tracking request-time per user/client-id"
    assert metric.value(EPOCH_MS) == 100.0


def test_without_rules(registry: Registry) -> None:
    """Neither requests nor exempt ones are recorded as long as no rule exists."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    assert manager.maybe_record_request(ALICE, "c", 9_999 * MS, EPOCH_MS) == 0
    manager.maybe_record_exempt(9_999 * MS, EPOCH_MS)
    assert exempt_percent(registry) == 0.0
    assert set(registry.sensors()) == {"Request-delayQueue", "exempt-Request"}


def test_exempt_requests(registry: Registry) -> None:
    """Exempt time is measured over the registry's 2 x 30 s, and never expires."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    manager.update_quota(RULE, 1)
    manager.maybe_record_exempt(3_000 * MS, EPOCH_MS)
    assert exempt_percent(registry) == 10.0
    assert registry.expire_sensors(EPOCH_MS * 2) == ()
