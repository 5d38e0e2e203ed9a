"""Quota types and their names; entities, what they are made of and where they stand."""

import copy
import pickle

import pytest

from quotascope.metrics import DEFAULT, InvalidConfig, Level, QuotaEntity, QuotaType
from quotascope.metrics.entities import Name


def test_default_equals_no_string() -> None:
    """A client that calls itself <default> is not the default client."""
    assert QuotaEntity(client_id="<default>") != QuotaEntity(client_id=DEFAULT)
    assert repr(DEFAULT) == "DEFAULT"


def test_default_stays_single() -> None:
    """Copying and pickling an entity keeps the one default."""
    entity = QuotaEntity("alice", DEFAULT)
    assert copy.deepcopy(entity).client_id is DEFAULT
    assert pickle.loads(pickle.dumps(entity)).client_id is DEFAULT  # noqa: S301 - our own


def test_an_entity_has_a_dimension() -> None:
    """An entity with neither a user nor a client-id means nothing."""
    with pytest.raises(InvalidConfig, match="a user, a client-id, or both"):
        QuotaEntity()


@pytest.mark.parametrize(
    ("user", "client_id", "level"),
    [
        ("u", "c", Level.USER_CLIENT),
        ("u", DEFAULT, Level.USER_DEFAULT_CLIENT),
        ("u", None, Level.USER),
        (DEFAULT, "c", Level.DEFAULT_USER_CLIENT),
        (DEFAULT, DEFAULT, Level.DEFAULT_USER_DEFAULT_CLIENT),
        (DEFAULT, None, Level.DEFAULT_USER),
        (None, "c", Level.CLIENT),
        (None, DEFAULT, Level.DEFAULT_CLIENT),
    ],
)
def test_level(user: Name | None, client_id: Name | None, level: Level) -> None:
    """Which dimensions are named, default or absent makes the level."""
    assert QuotaEntity(user, client_id).level is level


def test_levels_are_ordered_by_strength() -> None:
    """The order of the enum is the precedence, and its values are the labels."""
    assert [level.value for level in Level] == [
        "user_client",
        "user_default_client",
        "user",
        "default_user_client",
        "default_user_default_client",
        "default_user",
        "client",
        "default_client",
        "none",
    ]


def test_hostile_names_stay_on_one_line() -> None:
    """An entity's text quotes its names, so that a log line cannot be broken."""
    assert str(QuotaEntity("a\nb", DEFAULT)) == "user 'a\\nb', default client-id"
    assert str(QuotaEntity(None, 'x"')) == "client-id 'x\"'"
    assert str(QuotaEntity(DEFAULT)) == "default user"


@pytest.mark.parametrize(
    ("quota_type", "group", "label", "key"),
    [
        (QuotaType.PRODUCE, "Produce", "produce", "producer_byte_rate"),
        (QuotaType.FETCH, "Fetch", "fetch", "consumer_byte_rate"),
        (QuotaType.REQUEST, "Request", "request", "request_percentage"),
        (
            QuotaType.CONTROLLER_MUTATION,
            "ControllerMutation",
            "controller_mutation",
            "controller_mutation_rate",
        ),
    ],
)
def test_names(quota_type: QuotaType, group: str, label: str, key: str) -> None:
    """Each type is known by a metric group, a label and a configuration key."""
    assert (quota_type.group, quota_type.label, quota_type.quota_key) == (
        group,
        label,
        key,
    )
    assert QuotaType.of_quota_key(key) is quota_type


def test_a_key_of_another_quota() -> None:
    """The connection rate is no client quota."""
    assert QuotaType.of_quota_key("connection_creation_rate") is None
