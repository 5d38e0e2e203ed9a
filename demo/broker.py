"""A broker as far as its quotas can see: requests are charged and channels muted, nothing is stored."""

from collections import Counter, defaultdict, deque
from functools import partial
from math import exp

from quotascope.metrics.engine.broker_quotas import BrokerQuotas, ClientRequest, Instant
from quotascope.metrics.engine.channel import Channel, ChannelThrottle, MuteState
from quotascope.metrics.engine.combination import Decision
from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.kafka.principal import Principal

from .cast import Call, CreateTopics, Fetch, Produce, Request, Response


class DemoConnection:
    """
    Connection of a client, and whether the broker reads from it.

    Args:
        user: name of the principal.
        client_id: as in the header of each request.

    """

    __slots__ = ("_principal", "_throttle", "channel", "client_id")

    def __init__(self, user: str, client_id: str) -> None:
        self.channel = Channel()
        self.client_id = client_id
        self._principal = Principal(user)
        self._throttle = ChannelThrottle(self.channel)

    @property
    def is_read(self) -> bool:
        """False while a throttle lasts: what the client sends waits in the socket."""
        return self.channel.state is MuteState.NOT_MUTED

    def charge(self, thread_ms: float) -> ClientRequest:
        """Return what the quotas need to know of a request that kept a thread busy for `thread_ms`."""
        return ClientRequest(
            principal=self._principal,
            client_id=self.client_id,
            channel=self._throttle,
            thread_time_ns=round(thread_ms * 1_000_000),
        )


_NANOS_PER_MS = 1_000_000
_THREADS = 4
"""`num.io.threads`: Kafka's default of 8 would hardly be busy."""
_LAST_REQUESTS = 1_000
"""Number of the last requests that percentiles are computed from, about as many as Kafka's histograms keep."""
_TICK_MS = 5_000
_WEIGHT = 1 - exp(-_TICK_MS / 60_000)
"""Weight of the last tick in a rate of one minute, as in Kafka's meters."""
_HANDLERS = "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"
_EVENTS = "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs"


class Broker:
    """
    A broker and controller in one that clients ask directly (KIP-919).

    So a mutation throttle shows as such; a broker that forwards to a controller hides it among those of Request.
    To be used by one thread, with a clock that never goes back: the same time serves for rates and for deadlines.

    Args:
        managers: the quotas.
        start_ms: when it is started, in epoch ms.

    """

    def __init__(self, managers: QuotaManagers, start_ms: int) -> None:
        self._managers = managers
        self._quotas = BrokerQuotas(managers)
        self._answered = Counter[str]()
        self._throttled_ms = Counter[str]()
        self._refused = Counter[str]()
        self._events = 0
        self._event_queue_ms = 0.0
        self._controller_free_ms = 0.0
        self._began_ms = self._now_ms = start_ms
        self._held_ms = 0.0
        self._free_ms = [float(start_ms)] * _THREADS
        """By handler thread: when it is free."""
        self._ticked_ms, self._ticked_idle_ms = start_ms, 0.0
        self._idle_ratio: float | None = None
        self._waits_ms = defaultdict[str, deque[float]](partial(deque, maxlen=_LAST_REQUESTS))

    def beans(self) -> dict[str, dict[str, float]]:
        """
        Return the attributes of the MBeans that Kafka has beside its quota metrics, by object name.

        `RequestMetrics` by request: the throttle times in ms, and the topics refused with error 89; of the controller,
        how long its events wait; of the handler threads, how long they were idle, and how long requests waited for
        them.
        """
        beans = {
            "kafka.controller:type=KafkaController,name=ActiveControllerCount": {"Value": 1.0},
            _EVENTS: {
                "Mean": self._event_queue_ms / max(self._events, 1),
                "Count": float(self._events),
            },
            _HANDLERS: {"Count": _NANOS_PER_MS * self._idle_ms()},
        }
        if self._idle_ratio is not None:
            beans[_HANDLERS]["OneMinuteRate"] = self._idle_ratio
        for request, count in self._answered.items():
            of_request = f"kafka.network:type=RequestMetrics,name=%s,request={request}"
            beans[of_request % "ThrottleTimeMs"] = {
                "Mean": self._throttled_ms[request] / count,
                "Count": float(count),
            }
            waits = sorted(self._waits_ms[request])
            beans[of_request % "RequestQueueTimeMs"] = {
                f"{percentile}thPercentile": waits[len(waits) * percentile // 100] for percentile in (50, 95, 99)
            }
            if request == "CreateTopics":
                name = of_request % "ErrorsPerSec"
                beans[f"{name},error=THROTTLING_QUOTA_EXCEEDED"] = {"Count": float(self._refused[request])}
        return beans

    def handle(self, connection: DemoConnection, request: Request, thread_ms: float, now_ms: int) -> Response:
        """
        Answer a request that kept a thread busy for `thread_ms`; `now_ms` is epoch ms.

        The response leaves at once, the channel stays muted for its throttle time (KIP-219).
        """
        connection.channel.request_received()
        self._queue(request.api, thread_ms, now_ms)
        charged, now = connection.charge(thread_ms), _instant(now_ms)
        match request:
            case Produce(size=size):
                response = _response(self._quotas.produce(charged, size, now, acks=1))
            case Fetch(size=waiting):
                size = self._quotas.max_fetch_bytes(charged, waiting, now)
                decision = self._quotas.fetch(charged, size, now)
                response = _response(decision, request if decision.unrecord_fetch else None)
            case CreateTopics():
                response = self._create(charged, request, now)
            case Call():
                response = _response(self._quotas.other(charged, now))
        connection.channel.response_sent()
        self._answered[request.api] += 1
        self._throttled_ms[request.api] += response.throttle_ms
        return response

    def reap(self, now_ms: int) -> None:
        """End the throttles that are over; their channels are read again."""
        self._now_ms = now_ms
        if now_ms - self._ticked_ms >= _TICK_MS:
            self._tick()
        now = _instant(now_ms)
        self._managers.reap(now.ms, now.ns)

    def _idle_ms(self) -> float:
        """Return the mean idle time of a handler thread in ms."""
        held_ms = self._held_ms - sum(max(free - self._now_ms, 0.0) for free in self._free_ms)
        return self._now_ms - self._began_ms - held_ms / _THREADS

    def _tick(self) -> None:
        """Let the time since the last tick count in the rate of one minute; the first tick sets it."""
        idle_ms = self._idle_ms()
        latest = (idle_ms - self._ticked_idle_ms) / (self._now_ms - self._ticked_ms)
        previous = latest if self._idle_ratio is None else self._idle_ratio
        self._idle_ratio = previous + _WEIGHT * (latest - previous)
        self._ticked_ms, self._ticked_idle_ms = self._now_ms, idle_ms

    def _queue(self, api: str, thread_ms: float, now_ms: int) -> None:
        """Have the handler thread that is free first take a request."""
        self._now_ms = now_ms
        began_ms = max(min(self._free_ms), now_ms)
        self._free_ms[self._free_ms.index(min(self._free_ms))] = began_ms + thread_ms
        self._waits_ms[api].append(began_ms - now_ms)
        self._held_ms += thread_ms

    def _create(self, charged: ClientRequest, request: CreateTopics, now: Instant) -> Response:
        # one thread handles the events of a controller one after the other
        self._events += 1
        self._event_queue_ms += max(self._controller_free_ms - now.ms, 0.0)
        thread_ms = charged.thread_time_ns / _NANOS_PER_MS
        self._controller_free_ms = max(self._controller_free_ms, now.ms) + thread_ms
        quota = self._managers.controller_mutation.quota_for(
            charged.principal, charged.client_id, MutationApi.CREATE_TOPICS, request.version, now.ms
        )
        refused: list[int] = []
        for partitions in request.partitions:
            try:
                quota.record(partitions, now.ms)
            except ThrottlingQuotaExceeded:
                refused.append(partitions)
        self._refused[request.api] += len(refused)
        again = CreateTopics(partitions=tuple(refused), version=request.version)
        decision = self._quotas.controller(charged, quota, now)
        return _response(decision, again if refused else None)


def _response(decision: Decision, again: Request | None = None) -> Response:
    return Response(throttle_ms=decision.response_ms, again=again)


def _instant(now_ms: int) -> Instant:
    return Instant(ms=now_ms, ns=now_ms * _NANOS_PER_MS)
