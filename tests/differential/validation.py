"""
Quotas that a KRaft controller stores, and names of pushed metrics and addresses, against ours.

A new controller stores what we find no problem with, and refuses the rest under the same code.

Kafka's controller is asked for one alteration at a time. Left out are host names, which it would look up, and thereby
names of addresses that are none. Pushed metrics and addresses have the same names; the label that a client leaves
out when it sends is left out on both sides.
"""

import math

from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject, nothing
from tests.differential.wire import Argument, quote

from quotascope.metrics.engine.extras.telemetry_names import telemetry_labels, telemetry_name
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.host_address import host_address
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.validation import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS, validate_alteration

KEYS = (*CLIENT_QUOTA_KEYS, *IP_QUOTA_KEYS, "foobar", "")
VALUES = (
    *(1.0, 1024.0, 0.5, 1235.0000001, 1.0000009, 1.0000011, 0.9999999, 2.245, 56.62367),
    *(0.0, -0.0, -2.0, 5e-324, 2147483647.0, 2147483648.0, 2.0**53 + 2, 2.0**63),
    *(9.223372036854777e18, 3.6893488147419103e19, math.inf, -math.inf, math.nan),
)
TYPES = ("user", "client-id", "ip", "foo", "")
IPS = ("1.2.3.4", "::1", "2001:0DB8::00ff", "::ffff:10.0.0.1", "::", "ff02::1:2")
WORDS = (
    *("producer-metrics", "Metrics", "metrics-metrics", "a.metrics.b", "-metrics"),
    *("produce-throttle-time-avg", "İ", "Σ-ΑΣ", "", "client-id", "client_id", "-"),
)


class ValidationTwin(Twin):
    """Our functions behind the operations of `java/ValidationSession.java`."""

    def __init__(self, release: KafkaRelease) -> None:
        super().__init__()
        self._release = release

    def _op_alter(self, dimensions: int, *words: str | float | None) -> str:
        """Validate an alteration, and answer the code of the first problem."""
        end = 2 * dimensions
        entity = {str(kind): _text(name) for kind, name in _pairs(words[:end])}
        changes = [(str(key), _number(value)) for key, value in _pairs(words[end:])]
        problems = validate_alteration(entity, changes, release=self._release)
        return str(problems[0].error_code if problems else 0)

    def _op_telemetry(self, prefix: str, group: str, name: str, *tags: str) -> str:
        if self._release < KafkaRelease(4, 0):
            return "unknown"
        try:
            labels = telemetry_labels(dict(zip(tags[::2], tags[1::2], strict=True)))
        except MalformedName:
            return "refused"
        written = sorted(f"{quote(key)}={quote(labels[key])}" for key in labels)
        named = telemetry_name(MetricName(name, group), prefix)
        return f"{quote(named)} [{','.join(written)}]"

    def _op_address(self, text: str) -> str:
        return quote(host_address(text))


def _pairs(words: tuple[str | float | None, ...]) -> list[tuple[str | float | None, str | float | None]]:
    return list(zip(words[::2], words[1::2], strict=True))


def _text(word: str | float | None) -> str | None:
    assert word is None or isinstance(word, str)
    return word


def _number(word: str | float | None) -> float | None:
    assert word is None or isinstance(word, float)
    return word


def operation(choice: Choice, _shape: None) -> Operation:
    match choice.of(("alter", "alter", "telemetry", "address")):
        case "alter":
            return Operation("alter", 0, (*_entity(choice), *_changes(choice)))
        case "telemetry":
            words = [_word(choice) for _ in range(3)]
            tags = {_word(choice): _word(choice) for _ in range(choice.integer(0, 3))}
            flat = [text for tag in tags.items() for text in tag]
            return Operation("telemetry", 0, (*words, *flat))
        case _:
            groups = (f"{choice.integer(0, 0xFFFF):x}" for _ in range(8))
            return Operation("address", 0, (choice.of((*IPS, ":".join(groups))),))


def _entity(choice: Choice) -> tuple[Argument, ...]:
    """Draw a mostly valid entity, without names as addresses, which would be looked up."""
    shapes = (("user",), ("client-id",), ("user", "client-id"), ("ip",), ())
    odd = tuple({choice.of(TYPES) for _ in range(choice.integer(0, 3))})
    kinds = choice.of((*shapes, odd))
    names: list[Argument] = []
    for kind in kinds:
        name = choice.of(IPS) if kind == "ip" else choice.of(HOSTILE)
        names += [kind, choice.of((name, name, name, None, ""))]
    return (len(kinds), *names)


def _changes(choice: Choice) -> tuple[Argument, ...]:
    changes: list[Argument] = []
    for _ in range(choice.of((1, 1, 1, 2, 0))):
        number = choice.of((choice.of(VALUES), choice.of(VALUES), choice.real()))
        changes += [choice.of(KEYS), choice.of((number, number, number, None))]
    return tuple(changes)


def _word(choice: Choice) -> str:
    return choice.of((choice.of(WORDS), choice.of(WORDS), choice.of(HOSTILE)))


SUBJECT = Subject(
    name="validation",
    share=0.05,
    shape=nothing,
    opening=lambda _: "new validation",
    twin=lambda _, release: ValidationTwin(release),
    operation=operation,
)
