from pathlib import Path

import pytest

from quotascope.spark_listener import exposition, jvm
from quotascope.spark_listener.properties import (
    PREFIX,
    PROPERTIES,
    Options,
    Settings,
    resolve,
)


def _problems(properties: dict[str, str], **options: object) -> list[str]:
    return [str(each) for each in resolve(properties, options).problems]


def test_arguments_come_before_properties() -> None:
    """And properties before defaults."""
    properties = {
        "spark.quotascope.queueCapacity": "500",
        "spark.quotascope.intervalSeconds": "2",
    }
    settings = resolve(properties, {"queue_capacity": 700, "app": None}).settings
    assert settings == Settings(queue_capacity=700, interval_seconds=2.0)


def test_every_argument_is_a_property() -> None:
    """And every property an argument."""
    assert [each.argument for each in PROPERTIES] == [*Options.__annotations__]


def test_properties_of_all_parts_are_known() -> None:
    """What the parts read by themselves is checked like the rest."""
    known = {each.key for each in PROPERTIES}
    assert {*exposition.KEYS, *jvm.KEYS} <= known


def test_documented_defaults_are_the_ones() -> None:
    """Where the default is a value, it is that of the settings."""
    for each in PROPERTIES:
        default = getattr(Settings(), each.argument, None)
        if default is not None:
            assert each.read(each.default) == default


def test_bad_property_is_reported_and_its_default_holds() -> None:
    """A job is not refused for it."""
    resolved = resolve({"spark.quotascope.queueCapacity": "many"}, {})
    assert resolved.settings == Settings()
    assert resolved.texts == {}
    assert [str(each) for each in resolved.problems] == [
        "spark.quotascope.queueCapacity: expected a whole number from 100 to 1000000, got 'many'"
    ]


def test_bad_argument_is_reported_like_a_property() -> None:
    """By the name of its property."""
    assert _problems({}, source="magic") == [
        "spark.quotascope.source: expected auto, pull, callbacks, streaming, event_log, got 'magic'"
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("queueCapacty", "; is spark.quotascope.queueCapacity meant?"), ("zzz", "")],
)
def test_unknown_property_is_reported(name: str, hint: str) -> None:
    """With the one that may be meant."""
    found = _problems({PREFIX + name: "1"})
    assert found == [f"{PREFIX}{name}: there is no such setting{hint}"]


def test_unknown_argument_is_reported() -> None:
    """It does not end the job."""
    assert _problems({}, capacity=3) == [
        "capacity: there is no such setting; is spark.quotascope.queueCapacity meant?"
    ]


def test_strangers_are_left_alone() -> None:
    """Other properties of Spark may hold secrets."""
    assert resolve({"spark.ssl.keyPassword": "secret"}, {}).texts == {}


def test_texts_of_arguments_are_as_properties_would_be() -> None:
    """Parts that read properties see arguments, too."""
    texts = resolve({}, {"http_enabled": False, "otlp_interval_seconds": 5.5}).texts
    assert texts == {
        "spark.quotascope.http.enabled": "false",
        "spark.quotascope.otlp.intervalSeconds": "5.5",
    }


def test_documentation_has_every_property() -> None:
    """With its argument, default and meaning, in the order of the code."""
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith(f"| `{PREFIX}")]
    assert table == [
        f"| `{each.key}` | `{each.argument}` | {each.default} | {each.meaning} |"
        for each in PROPERTIES
    ]
