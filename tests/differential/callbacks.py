"""
Kafka's quota managers with a custom callback against ours.

The same tags, sensors, bounds and throttle times when a program decides on them, also behind the managers' backs.

What a changed cluster does is not driven: a broker's metadata publisher does it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation
from tests.differential.drive import Subject
from tests.differential.figures import NodeTwin
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, step_ms, temper
from tests.differential.wire import Argument, Word, bits

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager
from quotascope.metrics.engine.quota_callback import QuotaCallback
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, DefaultType, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease

TYPES = (Word("PRODUCE"), Word("CONTROLLER_MUTATION"))
GROUPS = (Word("0"), Word("1"), Word("2"))
BOUNDS = (10.0, 1.0, 2.5, 100.0, 0.0)
DEFAULT_WORD = Word("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    samples: int
    window_s: int
    users: tuple[str, ...]
    clients: tuple[str, ...]
    temper: Temper
    settings: Settings
    """The windows as a config with the commonest bound."""


class Lengths(QuotaCallback):
    """Measures users by the length of their names, as the callback of `java/CallbackSession.java` does."""

    def __init__(self) -> None:
        self.limits: dict[str, float] = {}
        self.stale: set[str] = set()

    def quota_metric_tags(
        self,
        quota_type: QuotaType,  # noqa: ARG002 - the same for all
        principal: Principal,
        client_id: str,
    ) -> Mapping[str, str]:
        """Name the group and the client-id; an unnamed one has no tags."""
        if not principal.name:
            return {}
        return {"group": _group(principal.name), "client-id": client_id}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return self.limits.get(f"{quota_type.name}/{metric_tags.get('group', '')}")

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, bound: float) -> None:
        self.limits[_key(quota_type, entity)] = bound

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None:
        self.limits.pop(_key(quota_type, entity), None)

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        required = quota_type.name in self.stale
        self.stale.discard(quota_type.name)
        return required


def _group(name: str) -> str:
    return str(len(name.encode()) % 3)


def _key(quota_type: QuotaType, entity: QuotaEntity) -> str:
    name = entity.client_id if entity.user is None else entity.user
    return f"{quota_type.name}/{_group(name if isinstance(name, str) else '<default>')}"


class CallbackTwin(NodeTwin):
    """Our managers behind the operations of `java/CallbackSession.java`."""

    def __init__(self, shape: Shape, release: KafkaRelease) -> None:
        super().__init__(release)
        self._callback = Lengths()
        config = ManagerConfig(samples=shape.samples, window_seconds=shape.window_s, release=release)
        produce = ClientQuotaManager(self._registry, QuotaType.PRODUCE, EPOCH_MS, config, self._callback)
        mutation = ControllerMutationQuotaManager(self._registry, EPOCH_MS, config, self._callback)
        self._managers = dict(zip(TYPES, (produce, mutation), strict=True))

    def _op_reset(self, quota_type: Word) -> None:
        self._callback.stale.add(quota_type)

    def _op_change(self, quota_type: Word, group: Word, bound: float) -> None:
        """Change a bound behind the managers' backs."""
        self._callback.limits[f"{quota_type}/{group}"] = bound

    def _op_update(self, quota_type: Word, user: str | None, client_id: str | None, bound: float | None) -> str:
        manager = self._managers[quota_type]
        manager.update_quota(QuotaEntity(_name(user), _name(client_id)), bound)
        return str(manager.rules().flags)

    def _op_record(self, quota_type: Word, user: str, client_id: str, value: float) -> str:
        return str(
            self._managers[quota_type].maybe_record_and_get_throttle_time(
                Principal(user), client_id, value, self._now_ms
            )
        )

    def _op_limit(self, quota_type: Word, user: str, client_id: str) -> str:
        return bits(self._managers[quota_type].quota(Principal(user), client_id).bound)

    def _op_most(self, quota_type: Word, user: str, client_id: str) -> str:
        manager = self._managers[quota_type]
        return bits(manager.max_value_in_quota_window(Principal(user), client_id, self._now_ms))


def _name(token: str | None) -> str | DefaultType | None:
    return DEFAULT if isinstance(token, Word) else token


def shape(choice: Choice) -> Shape:
    samples, window_s = choice.of(((11, 1), (11, 1), (2, 1), (1, 1), (3, 30)))
    return Shape(
        samples=samples,
        window_s=window_s,
        users=("alice", "bob", "", choice.of(HOSTILE)),
        clients=("app", "", choice.of(HOSTILE)),
        temper=temper(choice),
        settings=Settings(samples=samples, window_ms=window_s * 1000, bound=BOUNDS[0]),
    )


def opening(shape: Shape) -> str:
    return f"new callbacks {EPOCH_MS} {shape.samples} {shape.window_s}"


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    quota_type = choice.of(TYPES)
    if happening < 45:
        value = amount(choice, shape.settings, shape.temper)
        return Operation("record", step, (quota_type, *_who(choice, shape), value))
    if happening < 65:
        return _change(choice, shape, step, quota_type)
    if happening < 80:
        verb = choice.of(("limit", "most"))
        return Operation(verb, step, (quota_type, *_who(choice, shape)))
    if happening < 97:
        return Operation("dump", step)
    return Operation("expire", choice.of((step, 3_600_000, 3_600_001)))


def _change(choice: Choice, shape: Shape, step: int, quota_type: Word) -> Operation:
    match choice.of(("update", "change", "reset")):
        case "reset":
            return Operation("reset", step, (quota_type,))
        case "change":
            group, bound = choice.of(GROUPS), choice.of(BOUNDS)
            return Operation("change", step, (quota_type, group, bound))
        case _:
            user: str | None = choice.of((*shape.users, DEFAULT_WORD, None))
            client = choice.of((*shape.clients, DEFAULT_WORD))
            entity = (user, choice.of((client, client, None)) if user else client)
            bounds: Argument = choice.of((*BOUNDS, None))
            return Operation("update", step, (quota_type, *entity, bounds))


def _who(choice: Choice, shape: Shape) -> tuple[Argument, Argument]:
    return choice.of(shape.users), choice.of(shape.clients)


SUBJECT = Subject(name="callbacks", share=0.05, shape=shape, opening=opening, twin=CallbackTwin, operation=operation)
