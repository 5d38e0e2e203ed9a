"""
Kafka's quotas on new connections against ours.

The same rates, waits, refusals and numbers of connections.

Kafka's `ConnectionQuotas.inc` waits in real time. So its halves are driven one by one, and `inc` as a whole only in
sessions in which nothing can make it wait; that the acceptor really waits so long is not compared, nor is its queue
of refused sockets, which wants real ones.
"""

from dataclasses import dataclass

from tests.differential.choice import Choice
from tests.differential.comparison import Operation
from tests.differential.drive import Subject
from tests.differential.figures import NodeTwin
from tests.differential.shapes import EPOCH_MS, Settings, Temper, step_ms, temper
from tests.differential.wire import Argument, flag

from quotascope.metrics.engine.errors import ConnectionThrottled, TooManyConnections
from quotascope.metrics.engine.extras.connection_counts import ConnectionCounts
from quotascope.metrics.engine.extras.connection_quotas import ConnectionQuotas
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.windows import WindowConfig

LISTENERS = ("CLIENT", "BROKER", "OTHER")
IPS = ("10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "2001:db8::ff", "::ffff:10.0.0.1")
RATES = (5, 1, 2, 20, 0, INT_MAX)
FEW = (2, 0, 1, 3, INT_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    samples: int
    window_s: int
    rate: int
    max_connections: int
    max_per_ip: int
    counting: bool
    """True if connections are counted; then neither broker nor listener has a limited rate, which would wait."""
    temper: Temper
    settings: Settings
    """The windows as a config with the commonest bound."""


class ConnectionTwin(NodeTwin):
    """Our quotas behind the operations of `java/ConnectionSession.java`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        windows = WindowConfig(samples=shape.samples, window_seconds=shape.window_s)
        counts = ConnectionCounts(shape.max_connections, shape.max_per_ip, None, "BROKER")
        self._quotas = ConnectionQuotas(self._registry, EPOCH_MS, windows, shape.rate, counts)
        self._listeners: set[str] = set()
        self._config = shape.rate, shape.max_connections

    def _op_broker_rate(self, rate: int) -> None:
        self._quotas.update_broker_rate(rate)

    def _op_max_connections(self, maximum: int) -> None:
        self._quotas.counts.max_connections = maximum

    def _op_max_per_ip(self, maximum: int) -> None:
        self._quotas.counts.max_per_ip = maximum

    def _op_ip_rate(self, ip: str | None, rate: int | None) -> None:
        self._quotas.update_ip_rate(ip, rate)

    def _op_ip_limit(self, ip: str) -> str:
        return str(self._quotas.rate_for_ip(ip))

    def _op_count(self, ip: str) -> str:
        return str(self._quotas.counts.count(ip))

    def _op_add_listener(self, listener: str) -> None:
        """Add a listener under the config that Kafka's side was made with."""
        self._listeners.add(listener)
        self._quotas.add_listener(listener, self._now_ms, *self._config)

    def _op_remove_listener(self, listener: str) -> None:
        self._listeners.discard(listener)
        self._quotas.remove_listener(listener)

    def _op_listener(self, listener: str, rate: int, maximum: int) -> None:
        if listener in self._listeners:
            self._quotas.update_listener_rate(listener, rate)
            self._quotas.counts.set_listener(listener, maximum)

    def _op_accept(self, listener: str) -> str:
        return str(self._quotas.accept(listener, self._now_ms))

    def _op_admit(self, listener: str, ip: str) -> str:
        """Record it for its address; its count is taken back, since Kafka's half does not count."""
        try:
            self._quotas.admit(listener, ip, self._now_ms)
        except ConnectionThrottled as refusal:
            return f"throttled {refusal.end_ms}"
        except TooManyConnections:
            pass
        self._quotas.closed(listener, ip)
        return "null"

    def _op_slot(self, listener: str) -> str:
        counts = self._quotas.counts
        free = str(counts.has_slot(listener)).lower()
        return f"{free} {flag(counts.is_exceeded(listener))}"

    def _op_open(self, listener: str, ip: str) -> str:
        if not self._quotas.counts.has_slot(listener):
            return "full"
        assert self._quotas.accept(listener, self._now_ms) == 0
        try:
            self._quotas.admit(listener, ip, self._now_ms)
        except ConnectionThrottled as refusal:
            return f"throttled {refusal.end_ms}"
        except TooManyConnections as refusal:
            return f"too many, {refusal.limit}"
        return "ok"

    def _op_close(self, listener: str, ip: str) -> str:
        try:
            self._quotas.closed(listener, ip)
        except ValueError:
            return "refused"
        return "ok"


def shape(choice: Choice) -> Shape:
    samples, window_s = choice.of(((11, 1), (2, 1), (2, 1), (1, 1), (3, 30), (10, 2)))
    counting = choice.of((False, True))
    return Shape(
        samples=samples,
        window_s=window_s,
        rate=INT_MAX if counting else choice.of(RATES),
        max_connections=choice.of((5, 3, 1, INT_MAX)),
        max_per_ip=choice.of((2, 1, 3, INT_MAX)),
        counting=counting,
        temper=temper(choice),
        settings=Settings(samples=samples, window_ms=window_s * 1000, bound=float(RATES[0])),
    )


def opening(shape: Shape) -> str:
    windows = EPOCH_MS, shape.samples, shape.window_s
    limits = shape.rate, shape.max_connections, shape.max_per_ip
    return " ".join(map(str, ("new connections", *windows, *limits)))


def beginning(_choice: Choice, _shape: Shape) -> tuple[Operation, ...]:
    """Return operations that add two listeners; the third comes and goes."""
    return tuple(Operation("add_listener", 0, (listener,)) for listener in LISTENERS[:2])


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 60:
        return _traffic(choice, shape, step)
    if happening < 75:
        return _limit(choice, shape, step)
    if happening < 80:
        verb = choice.of(("add_listener", "remove_listener", "add_listener"))
        return Operation(verb, step, (LISTENERS[2],))
    if happening < 97:
        return _question(choice, step)
    return Operation("expire", choice.of((step, 3_600_000, 3_600_001, 1_800_000)))


def _traffic(choice: Choice, shape: Shape, step: int) -> Operation:
    if shape.counting:
        verb = choice.of(("open", "open", "close"))
        return Operation(verb, step, (choice.of(LISTENERS[:2]), choice.of(IPS)))
    listener = choice.of((*LISTENERS[:2], *LISTENERS))
    if choice.of((True, False)):
        return Operation("accept", step, (listener,))
    return Operation("admit", step, (listener, choice.of(IPS)))


def _limit(choice: Choice, shape: Shape, step: int) -> Operation:
    rate = INT_MAX if shape.counting else choice.of(RATES)
    match choice.of(("ip_rate", "ip_rate", "broker_rate", "listener", "most", "per")):
        case "ip_rate":
            ip: Argument = choice.of((*IPS, None, None))
            return Operation("ip_rate", step, (ip, choice.of((*RATES, None))))
        case "broker_rate":
            return Operation("broker_rate", step, (rate,))
        case "listener":
            limits = choice.of(LISTENERS), rate, choice.of((3, 1, 2, INT_MAX))
            return Operation("listener", step, limits)
        case "most":
            return Operation("max_connections", step, (choice.of(FEW),))
        case _:
            return Operation("max_per_ip", step, (choice.of(FEW),))


def _question(choice: Choice, step: int) -> Operation:
    match choice.of(("dump", "dump", "ip_limit", "count", "slot")):
        case "dump":
            return Operation("dump", step)
        case "slot":
            return Operation("slot", step, (choice.of(LISTENERS[:2]),))
        case verb:
            return Operation(verb, step, (choice.of(IPS),))


SUBJECT = Subject(
    name="connections",
    share=0.1,
    shape=shape,
    opening=opening,
    twin=lambda shape, _: ConnectionTwin(shape),
    operation=operation,
    beginning=beginning,
)
