"""
Kafka's four quota managers against ours.

Whatever the rules, the traffic and the clock do: the same throttle times, tags, sensors and figures.

Quotas reach Kafka's managers as metadata deltas, as in a KRaft broker; requests reach its request quota manager as such.
Two things are compared less strictly: metrics that only we have are left out, with the number of all metrics; and of
channels with the same deadline, whose order Java leaves open, only the deadline is.
"""

from dataclasses import dataclass

from tests.differential.choice import HOSTILE, Choice
from tests.differential.drive import Subject
from tests.differential.manager_twin import ManagerTwin
from tests.differential.operation import Operation
from tests.differential.shapes import EPOCH_MS, HUGE, LONG_MAX, TINY, Settings, Temper, amount, step_ms, temper
from tests.differential.wire import Argument, Word

from quotascope.metrics import QuotaType

INT_MAX = 2**31 - 1
TYPES = tuple(Word(quota_type.value) for quota_type in QuotaType)
KEYS = tuple(Word(quota_type.quota_key) for quota_type in QuotaType)
MUTATIONS = Word(QuotaType.CONTROLLER_MUTATION.quota_key)
DEFAULT = Word("*")
BOUNDS = (10.0, 10.0, 1.0, 2.5, 100.0, 33.3, 0.1)
EXTREME_BOUNDS = (0.0, TINY, 1e-12, HUGE, float(LONG_MAX), float(INT_MAX), 3e-5, -1.0)

Entity = tuple[str | None, str | None]
"""User and client-id; the default is a word, so that it differs from every name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What stays the same: the managers' windows, who there is, how bad it gets."""

    client: tuple[int, int]
    controller: tuple[int, int]
    types: tuple[Word, ...]
    users: tuple[str, ...]
    clients: tuple[str, ...]
    entities: tuple[Entity, ...]
    """Whom the session sets quotas for: with few of them it happens that none is left."""
    temper: Temper

    @property
    def settings(self) -> Settings:
        """The windows as a config with the commonest bound."""
        return Settings(samples=self.client[0], window_ms=self.client[1] * 1000, bound=BOUNDS[0])


def shape(choice: Choice) -> Shape:
    """Draw what stays the same; often only one type has traffic, so that its sensors see much of it."""
    users = ("alice", "bob", choice.of(HOSTILE))
    clients = ("app", "", choice.of(HOSTILE))
    return Shape(
        client=choice.of(((11, 1), (11, 1), (2, 1), (1, 1), (3, 30), (10, 2))),
        controller=choice.of(((11, 1), (11, 1), (10, 1), (1, 1), (100, 1), (2, 7))),
        types=choice.of((*((each,) for each in TYPES), TYPES)),
        users=users,
        clients=clients,
        entities=tuple(_entity(choice, users, clients) for _ in range(choice.of((1, 2, 4, 12)))),
        temper=temper(choice),
    )


def _entity(choice: Choice, users: tuple[str, ...], clients: tuple[str, ...]) -> Entity:
    """One of the eight shapes."""
    user = choice.of((users[0], *users, DEFAULT, DEFAULT, None, None))
    absent: tuple[str | None, ...] = () if user is None else (None, None)
    return user, choice.of((*clients, clients[0], DEFAULT, DEFAULT, *absent))


def opening(shape: Shape) -> str:
    """The line that creates Kafka's side."""
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
    """Draw what happens next."""
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
    who = _who(choice, shape)
    value = amount(choice, shape.settings, shape.temper)
    match choice.of(
        (
            "record",
            "record",
            "record",
            "record",
            "unrecord",
            "uncheck",
            "request",
            "exempt",
        )
    ):
        case "request":
            return Operation("request", step, (*who, _nanos(choice), _nanos(choice)))
        case "exempt":
            return Operation("exempt", step, (_nanos(choice), _nanos(choice)))
        case verb:
            return Operation(verb, step, (choice.of(shape.types), *who, value))


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
    twin=lambda shape, release: ManagerTwin(EPOCH_MS, shape.client, shape.controller, release),
    operation=operation,
    beginning=beginning,
)
