"""Quotas that a KRaft controller stores."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease
from quotascope.metrics.kafka.validation import (
    CLIENT_QUOTA_KEYS,
    IP_QUOTA_KEYS,
    QuotaProblem,
    validate_alteration,
    validate_request,
)

CLIENT = {"client-id": "c"}
ADDRESS = {"ip": "1.2.3.4"}


def messages(
    entity: Mapping[str, str | None], *changes: tuple[str, float | None], release: KafkaRelease = NEWEST_RELEASE
) -> list[str]:
    return [problem.message for problem in validate_alteration(entity, changes, release=release)]


@pytest.mark.parametrize(
    "entity",
    [
        {"user": "u"},
        {"user": None},
        {"user": "<default>"},
        {"user": "u", "client-id": "c"},
        {"user": None, "client-id": None},
        CLIENT,
    ],
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 1.0),
        ("consumer_byte_rate", 1235.0000001),
        ("consumer_byte_rate", 2.0**63),
        ("request_percentage", 56.62367),
        ("request_percentage", 1.7976931348623157e308),
        ("controller_mutation_rate", 0.5),
        ("producer_byte_rate", None),
        ("no_such_key", None),
    ],
)
def test_stores(entity: Mapping[str, str | None], key: str, value: float) -> None:
    """Kafka stores any user or client-id, its default, and pairs; removals whatever the key."""
    assert messages(entity, (key, value)) == []


def test_stores_limits_of_addresses() -> None:
    """Kafka stores limits up to the largest 32-bit number; host names are checked by a caller that can resolve them."""
    for ip in ("1.2.3.4", "::1", None):
        assert messages({"ip": ip}, ("connection_creation_rate", 2147483647.0)) == []
    entity, changes = {"ip": "localhost"}, [("connection_creation_rate", 1.0)]
    assert validate_alteration(entity, changes) != []
    assert validate_alteration(entity, changes, is_host="localhost".__eq__) == []


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({}, "the entity is empty"),
        ({"foo": "bar"}, "'foo' is not a type of entity: user, client-id or ip"),
        ({"user": ""}, "the name of 'user' is empty"),
        ({"ip": ""}, "the name of 'ip' is empty"),
        ({"ip": "1.2.3.4", "user": "u"}, "an ip cannot be combined with a user or client-id"),
        ({"ip": "a\nb"}, "'a\\nb' is not an address that can be resolved"),
    ]
)  # fmt: skip
def test_refuses_entities(entity: Mapping[str, str | None], message: str) -> None:
    """A wrong entity is one problem, under error 42 and no key, however many keys are changed."""
    changes = [("producer_byte_rate", 1.0), ("connection_creation_rate", 1.0)]
    expected = [QuotaProblem(message=message)]
    assert validate_alteration(entity, changes) == expected
    assert expected[0].error_code == 42


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        (CLIENT, "producer_byte_rate", 0.0, "greater than 0"),
        (CLIENT, "producer_byte_rate", -2.0, "greater than 0"),
        (CLIENT, "consumer_byte_rate", 2.245, "whole number"),
        (CLIENT, "consumer_byte_rate", 0.9999999, "whole number"),
        (CLIENT, "consumer_byte_rate", math.inf, "too large for LONG"),
        (CLIENT, "consumer_byte_rate", math.nextafter(2.0**63, math.inf), "too large"),
        (CLIENT, "foobar", 1.0, "'foobar' is none"),
        (CLIENT, "connection_creation_rate", 1.0, "is none of this entity's keys"),
        (ADDRESS, "producer_byte_rate", 1.0, "keys: connection_creation_rate"),
        (ADDRESS, "connection_creation_rate", 0.0, "greater than 0"),
        (ADDRESS, "connection_creation_rate", 2147483648.0, "too large for INT"),
    ],
)
def test_refuses_values(entity: Mapping[str, str | None], key: str, value: float, message: str) -> None:
    """A wrong value is refused with its key and what is wrong."""
    [problem] = validate_alteration(entity, [(key, value)])
    assert problem.key == key
    assert message in problem.message


def test_reports_all_problems() -> None:
    """All problems are reported, of which Kafka reports the first; a repeated change or removal is a problem."""
    changes = [("producer_byte_rate", 0.0), ("request_percentage", -1.0)]
    problems = validate_alteration({"user": "", "x": "y"}, changes)
    assert [problem.key for problem in problems] == [None, None, "producer_byte_rate", "request_percentage"]
    twice = ("producer_byte_rate", 1.0), ("producer_byte_rate", None)
    assert messages(CLIENT, *twice) == ["'producer_byte_rate' is there twice"]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [("producer_byte_rate", math.nan, "is not a number"), ("request_percentage", math.inf, "is not finite")],
)
def test_a_number_has_to_be_finite_since_4_4(key: str, value: float, problem: str) -> None:
    """Up to 4.3 Kafka stores NaN, and an infinite quota of percent or of controller mutations."""
    assert messages(CLIENT, (key, value), release=KafkaRelease(4, 3)) == []
    assert messages(CLIENT, (key, value)) == [f"'{key}' {problem}"]


def test_an_entity_comes_once_in_a_request() -> None:
    """An entity may come once in a request: the second time is refused, in whatever order its dimensions are."""
    both = {"user": "u", "client-id": "c"}
    entities: list[dict[str, str]] = [both, {"user": "u"}, dict(reversed(both.items()))]
    answers = validate_request([(entity, [("producer_byte_rate", 1.0)]) for entity in entities])
    expected = [[], [], ["the entity is in the request twice"]]
    assert [[problem.message for problem in problems] for problems in answers] == expected


def test_a_request_refuses_nan() -> None:
    """A request refuses NaN since 4.4, as an alteration does."""
    request = [(CLIENT, [("request_percentage", math.nan)])]
    assert validate_request(request, release=KafkaRelease(4, 3)) == [[]]
    ((refused,),) = validate_request(request)
    assert refused.message == "'request_percentage' is not a number"


def test_every_quota_type_has_its_key() -> None:
    """Every quota type has its key in the schema and in the engine."""
    assert {quota_type.quota_key for quota_type in QuotaType} == set(CLIENT_QUOTA_KEYS)
    assert set(IP_QUOTA_KEYS) == {"connection_creation_rate"}


NAMES = st.none() | st.text(max_size=200)


@given(
    st.dictionaries(st.sampled_from(["user", "client-id", "ip"]) | st.text(), NAMES),
    st.lists(st.tuples(st.sampled_from([*CLIENT_QUOTA_KEYS]) | st.text(), st.floats())),
)
def test_problems_are_one_line_each(entity: dict[str, str | None], changes: list[tuple[str, float | None]]) -> None:
    """Each problem is one line, whatever the names, and nothing is raised."""
    for problem in validate_alteration(entity, changes):
        assert problem.message.isprintable()
        assert len(problem.message) < 500
