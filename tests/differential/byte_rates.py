"""
Kafka's quotas on replication and tiered storage against ours.

The same rates, violations and waits, the same marks, and the same lists are read and refused.

Driven are `ReplicationQuotaManager`, `RLMQuotaManager`, `RLMQuotaMetrics` and the parser of `TopicConfigHandler`. Who
asks them, the fetches and transfers of a broker, is not: that needs a broker. Left out are lists with spaces inside,
of which Kafka refuses only those that matter to the broker.
"""

from dataclasses import dataclass

from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation
from tests.differential.drive import Subject
from tests.differential.figures import NodeTwin
from tests.differential.shapes import EPOCH_MS, LONG_MAX, TINY, Settings, Temper, amount, step_ms, temper
from tests.differential.wire import Argument, flag

from quotascope.metrics.engine.extras.replication_quotas import ReplicationQuotaManager, parse_throttled_replicas
from quotascope.metrics.engine.extras.tiered_storage import RLMQuotaManager, RLMQuotaMetrics
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.kafka.windows import WindowConfig

BOUNDS = (10.0, 100.0, 1.0, 2.5, 0.0, TINY, float(LONG_MAX), -3.0, 1e300, None)
KAFKAS_NAMES = {
    ReplicationQuotaType.LEADER: "LEADER_REPLICATION",
    ReplicationQuotaType.FOLLOWER: "FOLLOWER_REPLICATION",
    ReplicationQuotaType.ALTER_LOG_DIRS: "ALTER_LOG_DIRS_REPLICATION",
}
REPLICAS = (
    *("0:1", "1:2", "7:1", "007:01", "2147483647:1", "5:2147483647"),
    *("", "x", "1", "1:", ":1", "1:1:1", "-1:1", "2147483648:1", "2147483648:2"),
    *("5:99999999999", "*", "٣:1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    samples: int
    window_s: int
    replication: ReplicationQuotaType
    tiered: RLMQuotaType
    bound: int
    topics: tuple[str, ...]
    temper: Temper
    settings: Settings
    """The windows as a config with the commonest bound."""


class ByteRateTwin(NodeTwin):
    """Our managers behind the operations of `java/ByteRateSession.java`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        windows = WindowConfig(samples=shape.samples, window_seconds=shape.window_s)
        self._replication = ReplicationQuotaManager(self._registry, shape.replication, windows)
        self._tiered = RLMQuotaManager(self._registry, shape.tiered, shape.bound, windows)
        self._waits = RLMQuotaMetrics(self._registry, shape.tiered)

    def _op_update(self, bound: float | None) -> None:
        self._replication.update_quota(None if bound is None else Quota(bound))

    def _op_update_tiered(self, bound: float | None) -> None:
        self._tiered.update_quota(None if bound is None else Quota(bound))

    def _op_record(self, size: int) -> None:
        self._replication.record(size, self._now_ms)

    def _op_record_tiered(self, size: float) -> None:
        self._tiered.record(size, self._now_ms)

    def _op_exceeded(self) -> str:
        return flag(self._replication.is_quota_exceeded(self._now_ms))

    def _op_wait(self) -> str:
        wait_ms = self._tiered.throttle_time_ms(self._now_ms)
        if wait_ms > 0:
            self._waits.record(wait_ms, self._now_ms)
        return str(wait_ms)

    def _op_mark(self, topic: str, partitions: tuple[int, ...] | None = None) -> None:
        if partitions is None:
            self._replication.mark_throttled(topic)
        else:
            self._replication.mark_throttled(topic, partitions[1:])

    def _op_unmark(self, topic: str) -> None:
        self._replication.remove_throttle(topic)

    def _op_marked(self, topic: str, partition: int) -> str:
        return flag(self._replication.is_throttled(topic, partition))

    def _op_bound(self) -> str:
        return str(self._replication.upper_bound)

    def _op_parse(self, text: str, broker: int) -> str:
        try:
            partitions = parse_throttled_replicas(text, broker)
        except InvalidConfig:
            return "refused"
        return f"[{','.join(map(str, partitions))}]"


def shape(choice: Choice) -> Shape:
    samples, window_s = choice.of(((11, 1), (11, 1), (2, 1), (1, 1), (3, 30), (10, 2)))
    return Shape(
        samples=samples,
        window_s=window_s,
        replication=choice.of(tuple(ReplicationQuotaType)),
        tiered=choice.of(tuple(RLMQuotaType)),
        bound=choice.of((10, 1, 1000, 0, LONG_MAX)),
        topics=("topic", choice.of(HOSTILE)),
        temper=temper(choice),
        settings=Settings(samples=samples, window_ms=window_s * 1000, bound=BOUNDS[0]),
    )


def opening(shape: Shape) -> str:
    names = KAFKAS_NAMES[shape.replication], shape.tiered.name
    windows = EPOCH_MS, shape.samples, shape.window_s
    return " ".join(map(str, ("new byterates", *windows, *names, shape.bound)))


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 45:
        return _record(choice, shape, step)
    if happening < 55:
        verb = choice.of(("update", "update_tiered"))
        return Operation(verb, step, (choice.of(BOUNDS),))
    if happening < 75:
        return Operation(choice.of(("exceeded", "wait", "wait", "bound")), step)
    if happening < 90:
        return _marking(choice, shape, step)
    if happening < 97:
        return Operation("dump", step)
    return Operation("expire", choice.of((step, 3_600_000, 3_600_001, 1_800_000)))


def _record(choice: Choice, shape: Shape, step: int) -> Operation:
    value = amount(choice, shape.settings, shape.temper)
    if choice.of((True, False)):
        return Operation("record_tiered", step, (value,))
    whole = int(max(-(2.0**62), min(2.0**62, value)))
    return Operation("record", step, (whole,))


def _marking(choice: Choice, shape: Shape, step: int) -> Operation:
    topic = choice.of(shape.topics)
    match choice.of(("parse", "marked", "mark", "unmark")):
        case "parse":
            text = ",".join(choice.of(REPLICAS) for _ in range(choice.integer(0, 4)))
            around = choice.of(("", "", " ", "\n"))
            listed = f"{around}{text}{choice.of(('', ','))}{around}"
            return Operation("parse", step, (listed, choice.integer(1, 2)))
        case "marked":
            return Operation("marked", step, (topic, choice.integer(-1, 3)))
        case "unmark":
            return Operation("unmark", step, (topic,))
        case _:
            return Operation("mark", step, (topic, *_partitions(choice)))


def _partitions(choice: Choice) -> tuple[Argument, ...]:
    """
    Return nothing for all partitions, or their number and the partitions.

    One of them may be Kafka's mark for all.
    """
    if choice.integer(0, 3) == 0:
        return ()
    count = choice.integer(0, 3)
    return ((count, *(choice.integer(-1, 3) for _ in range(count))),)


SUBJECT = Subject(
    name="byte rates",
    share=0.1,
    shape=shape,
    opening=opening,
    twin=lambda shape, _: ByteRateTwin(shape),
    operation=operation,
)
