"""
Kafka's four quota managers against ours.

Whatever the rules, the traffic and the clock do: the same throttle times, tags, sensors and figures.

Quotas reach Kafka's managers as metadata deltas, as in a KRaft broker; requests reach its request quota manager as
such. Two things are compared less strictly: metrics that only we have are left out, with the number of all metrics; and
of channels with the same deadline, whose order Java leaves open, only the deadline is.
"""

from dataclasses import dataclass

from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation
from tests.differential.drive import Subject
from tests.differential.figures import NodeTwin
from tests.differential.shapes import EPOCH_MS, HUGE, LONG_MAX, TINY, Settings, Temper, amount, step_ms, temper
from tests.differential.wire import Argument, Word, bits, flag, quote

from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.mutation_quota import UNBOUNDED, MutationQuota, StrictMutationQuota
from quotascope.metrics.engine.quota_factory import QuotaConfig, QuotaManagers
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, DefaultType, QuotaEntity, QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease

TYPES = tuple(Word(quota_type.value) for quota_type in QuotaType)
KEYS = tuple(Word(quota_type.quota_key) for quota_type in QuotaType)
MUTATIONS = Word(QuotaType.CONTROLLER_MUTATION.quota_key)
DEFAULT_WORD = Word("*")
BOUNDS = (10.0, 10.0, 1.0, 2.5, 100.0, 33.3, 0.1)
EXTREME_BOUNDS = (0.0, TINY, 1e-12, HUGE, float(LONG_MAX), float(INT_MAX), 3e-5, -1.0)

Entity = tuple[str | None, str | None]
"""User and client-id; the default is a word, so that it differs from every name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    client: tuple[int, int]
    controller: tuple[int, int]
    types: tuple[Word, ...]
    users: tuple[str, ...]
    clients: tuple[str, ...]
    entities: tuple[Entity, ...]
    """Entities that the session sets quotas for: with few of them it happens that none is left."""
    temper: Temper
    settings: Settings
    """The windows as a config with the commonest bound."""


class Channel(ThrottleCallback):
    def __init__(self, twin: "ManagerTwin", deadline_ms: int) -> None:
        self._twin = twin
        self._deadline_ms = deadline_ms

    def start_throttling(self) -> None:
        self._twin.started += 1

    def end_throttling(self) -> None:
        self._twin.ended.append(str(self._deadline_ms))


class ManagerTwin(NodeTwin):
    """The four managers of a node, with two clocks and the quotas of requests that are under way."""

    def __init__(self, shape: Shape, release: KafkaRelease) -> None:
        super().__init__(release)
        self._monotonic_ms = 0
        client, controller = (
            ManagerConfig(samples=samples, window_seconds=window_s, release=release)
            for samples, window_s in (shape.client, shape.controller)
        )
        self._managers = QuotaManagers(self._registry, EPOCH_MS, QuotaConfig(client=client, controller=controller))
        self._quotas: dict[str, MutationQuota] = {}
        self.started = 0
        self.ended: list[str] = []

    def step(self, ms: int) -> None:
        """Move the wall clock, and the monotonic one if it is forward."""
        super().step(ms)
        self._monotonic_ms += max(ms, 0)

    def _op_update(self, key: str, user: str | None, client_id: str | None, bound: float | None) -> str:
        """Set or remove a quota; answer the level flags of all types."""
        quota_type = QuotaType.of_quota_key(key)
        assert quota_type is not None
        self._managers.update_quota(quota_type, QuotaEntity(_name(user), _name(client_id)), bound)
        return "".join(str(self._managers.of(quota_type).rules().flags) for quota_type in QuotaType)

    def _op_record(self, quota_type: str, user: str, client_id: str, value: float) -> str:
        manager = self._managers.of(QuotaType(quota_type))
        return str(manager.maybe_record_and_get_throttle_time(Principal(user), client_id, value, self._now_ms))

    def _op_uncheck(self, quota_type: str, user: str, client_id: str, value: float) -> None:
        manager = self._managers.of(QuotaType(quota_type))
        manager.record_no_throttle(Principal(user), client_id, value, self._now_ms)

    def _op_unrecord(self, quota_type: str, user: str, client_id: str, value: float) -> None:
        self._managers.of(QuotaType(quota_type)).unrecord(Principal(user), client_id, value, self._now_ms)

    def _op_most(self, quota_type: str, user: str, client_id: str) -> str:
        manager = self._managers.of(QuotaType(quota_type))
        return bits(manager.max_value_in_quota_window(Principal(user), client_id, self._now_ms))

    def _op_limit(self, quota_type: str, user: str, client_id: str) -> str:
        """Ask for the bound; the rule that decides must say the same."""
        manager = self._managers.of(QuotaType(quota_type))
        bound = manager.quota(Principal(user), client_id).bound
        decided = manager.decide(Principal(user), client_id).bound
        return bits(bound) if decided in (None, bound) else f"decided {decided}, quota {bound}"

    def _op_tags(self, quota_type: str, user: str, client_id: str) -> str:
        manager = self._managers.of(QuotaType(quota_type))
        user_tag, client_tag = manager.rules().metric_tags(user, client_id)
        return f"{quote(Principal(user_tag).sanitized)} {quote(client_tag)}"

    def _op_enabled(self, quota_type: str) -> str:
        return flag(self._managers.of(QuotaType(quota_type)).quotas_enabled)

    def _op_request(self, user: str, client_id: str, handler_ns: int, network_ns: int) -> str:
        """Charge a request whose handler took some time, then the network thread some more if a quota listened."""
        manager, principal = self._managers.request, Principal(user)
        listens = manager.quotas_enabled
        throttle_ms = manager.maybe_record_request(principal, client_id, handler_ns, self._now_ms)
        if listens:
            manager.record_network_thread_time(principal, client_id, network_ns, self._now_ms)
        return f"{throttle_ms} {flag(listens)}"

    def _op_exempt(self, handler_ns: int, network_ns: int) -> str:
        """Charge a request that no quota applies to."""
        manager = self._managers.request
        listens = manager.quotas_enabled
        manager.maybe_record_exempt(handler_ns, self._now_ms)
        if listens:
            manager.record_exempt(network_ns, self._now_ms)
        return flag(listens)

    def _op_throttle(self, quota_type: str, user: str, client_id: str, throttle_ms: int) -> None:
        self._managers.of(QuotaType(quota_type)).throttle(
            Principal(user),
            client_id,
            throttle_ms,
            Channel(self, self._monotonic_ms + throttle_ms),
            now_ms=self._now_ms,
            now_ns=self._monotonic_ms * 1_000_000,
        )

    def _op_reap(self, quota_type: str) -> str:
        manager = self._managers.of(QuotaType(quota_type))
        manager.reap(self._now_ms, self._monotonic_ms * 1_000_000)
        answer = f"{self.started} {len(manager.reaper.queue)} [{','.join(self.ended)}]"
        self.ended.clear()
        return answer

    def _op_mutation(self, number: str, mode: str, user: str, client_id: str) -> str:
        manager, principal = self._managers.controller_mutation, Principal(user)
        if mode == "strict":
            quota = manager.strict_quota_for(principal, client_id, self._now_ms)
        elif mode == "permissive":
            quota = manager.permissive_quota_for(principal, client_id, self._now_ms)
        else:
            quota = manager.quota_for(principal, client_id, MutationApi.CREATE_TOPICS, int(mode), self._now_ms)
        self._quotas[number] = quota
        if quota is UNBOUNDED:
            return "Unbounded"
        return "Strict" if isinstance(quota, StrictMutationQuota) else "Permissive"

    def _op_charge(self, number: str, permits: float) -> str:
        if number not in self._quotas:
            return "never made"
        try:
            self._quotas[number].record(permits, self._now_ms)
        except ThrottlingQuotaExceeded as error:
            return f"refused {error.throttle_time_ms}"
        return "ok"

    def _op_left(self, number: str) -> str:
        if number not in self._quotas:
            return "never made"
        quota = self._quotas[number]
        return f"{quota.throttle_time_ms(self._now_ms)} {flag(quota.is_exceeded)}"


def _name(token: str | None) -> str | DefaultType | None:
    return DEFAULT if isinstance(token, Word) else token


def shape(choice: Choice) -> Shape:
    """Draw what stays the same; often only one type has traffic, so that its sensors see much of it."""
    users = ("alice", "bob", choice.of(HOSTILE))
    clients = ("app", "", choice.of(HOSTILE))
    samples, window_s = choice.of(((11, 1), (11, 1), (2, 1), (1, 1), (3, 30), (10, 2)))
    return Shape(
        client=(samples, window_s),
        controller=choice.of(((11, 1), (11, 1), (10, 1), (1, 1), (100, 1), (2, 7))),
        types=choice.of((*((quota_type,) for quota_type in TYPES), TYPES)),
        users=users,
        clients=clients,
        entities=tuple(_entity(choice, users, clients) for _ in range(choice.of((1, 2, 4, 12)))),
        temper=temper(choice),
        settings=Settings(samples=samples, window_ms=window_s * 1000, bound=BOUNDS[0]),
    )


def _entity(choice: Choice, users: tuple[str, ...], clients: tuple[str, ...]) -> Entity:
    """Return an entity of one of the eight shapes."""
    user = choice.of((users[0], *users, DEFAULT_WORD, DEFAULT_WORD, None, None))
    absent: tuple[str | None, ...] = () if user is None else (None, None)
    return user, choice.of((*clients, clients[0], DEFAULT_WORD, DEFAULT_WORD, *absent))


def opening(shape: Shape) -> str:
    return " ".join(map(str, ("new managers", EPOCH_MS, *shape.client, *shape.controller)))


def beginning(choice: Choice, shape: Shape) -> tuple[Operation, ...]:
    """Draw a first rule for every type that has traffic and for mutations, and two requests with mutations."""
    keys = {KEYS[TYPES.index(quota_type)] for quota_type in shape.types} | {MUTATIONS}
    rules = (Operation("update", 0, (key, *choice.of(shape.entities), choice.of(BOUNDS))) for key in sorted(keys))
    requests = (
        Operation("mutation", 0, (Word(number), Word(mode), *_who(choice, shape)))
        for number, mode in (("0", "strict"), ("1", "permissive"))
    )
    return (*rules, *requests)


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 45:
        return _traffic(choice, shape, step)
    if happening < 57:
        return _rule(choice, shape, step)
    if happening < 70:
        return _muting(choice, shape, step)
    if happening < 84:
        return _mutation(choice, shape, step)
    if happening < 97:
        return _question(choice, shape, step)
    return Operation("expire", choice.of((step, 3_600_000, 3_600_001, 1_800_000)))


def _traffic(choice: Choice, shape: Shape, step: int) -> Operation:
    user_and_client = _who(choice, shape)
    value = amount(choice, shape.settings, shape.temper)
    match choice.of((*["record"] * 4, "unrecord", "uncheck", "request", "exempt")):
        case "request":
            return Operation("request", step, (*user_and_client, _nanos(choice), _nanos(choice)))
        case "exempt":
            return Operation("exempt", step, (_nanos(choice), _nanos(choice)))
        case verb:
            return Operation(verb, step, (choice.of(shape.types), *user_and_client, value))


def _rule(choice: Choice, shape: Shape, step: int) -> Operation:
    key = choice.of((KEYS[TYPES.index(choice.of(shape.types))], choice.of(KEYS)))
    bound: float | None = choice.of((*BOUNDS, *[None] * 5))
    if choice.integer(0, 7) == 7:
        bound = choice.of(EXTREME_BOUNDS)
    return Operation("update", step, (key, *choice.of(shape.entities), bound))


def _muting(choice: Choice, shape: Shape, step: int) -> Operation:
    quota_type = choice.of(shape.types)
    if choice.of((True, False)):
        throttle_ms = choice.of((500, 1000, 2000, 1, 0, -1, INT_MAX, choice.integer(1, 5000)))
        return Operation("throttle", step, (quota_type, *_who(choice, shape), throttle_ms))
    return Operation("reap", choice.of((step, abs(step), 500, 1000)), (quota_type,))


def _mutation(choice: Choice, shape: Shape, step: int) -> Operation:
    number = Word(choice.of("0123"))
    match choice.of(("mutation", "charge", "charge", "left")):
        case "mutation":
            mode = Word(choice.of(("strict", "permissive", "6", "5")))
            return Operation("mutation", step, (number, mode, *_who(choice, shape)))
        case "charge":
            permits = choice.of(
                (
                    amount(choice, shape.settings, shape.temper),
                    float(choice.integer(0, 500)),
                )
            )
            return Operation("charge", step, (number, permits))
        case verb:
            return Operation(verb, step, (number,))


def _question(choice: Choice, shape: Shape, step: int) -> Operation:
    match choice.of(("dump", "dump", "limit", "tags", "most", "enabled")):
        case "dump":
            return Operation("dump", step)
        case "enabled":
            return Operation("enabled", step, (choice.of(TYPES),))
        case verb:
            return Operation(verb, step, (choice.of(shape.types), *_who(choice, shape)))


def _who(choice: Choice, shape: Shape) -> tuple[Argument, Argument]:
    return choice.of(shape.users), choice.of(shape.clients)


def _nanos(choice: Choice) -> int:
    return choice.of(
        (
            5_000_000,
            100_000_000,
            1_000_000_000,
            0,
            1,
            12_345_678,
            choice.integer(0, 20_000_000_000),
        )
    )


SUBJECT = Subject(
    name="managers",
    share=0.3,
    shape=shape,
    opening=opening,
    twin=ManagerTwin,
    operation=operation,
    beginning=beginning,
)
