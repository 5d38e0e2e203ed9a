from pathlib import Path
from typing import Any

import pytest

from quotascope.metrics.catalog import Family, FamilyType, job_families
from quotascope.spark_listener import settings
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.settings import KEYS, PREFIX, ListenerSettings, documentation, resolve


def test_arguments_come_before_properties() -> None:
    """Properties come before defaults; None is no argument, and properties of others are left alone."""
    properties = {f"{PREFIX}queueCapacity": "500", f"{PREFIX}intervalSeconds": "2", "spark.ssl.keyPassword": "secret"}
    options = {"queue_capacity": 700, "app": None, "http_enabled": False}
    result = resolve(properties, options)
    expected = ListenerSettings(queue_capacity=700, interval_seconds=2.0, http_enabled=False)
    assert result == (expected, ())


def test_keys_are_arguments_in_the_style_of_spark() -> None:
    """`http_bind_address` is `http.bindAddress`; the documentation has each, in the order of the code."""
    names = [key.removeprefix(PREFIX) for key in KEYS]
    assert names[:5] == ["enabled", "source", "app", "intervalSeconds", "queueCapacity"]
    fields = [*ListenerSettings.__dataclass_fields__]
    for name, field in zip(names, fields, strict=True):
        plain = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
        assert plain.replace(".", "_") == field
    assert rows("guides/spark.md", f"- `{PREFIX}") == documentation()


@pytest.mark.parametrize(
    ("properties", "options", "problem"),
    [
        (
            {f"{PREFIX}queueCapacity": "many"},
            {},
            f"{PREFIX}queueCapacity: expected a whole number from 100 to 1000000, got 'many'",
        ),
        ({}, {"source": "magic"}, f"{PREFIX}source: expected auto, pull, callbacks, streaming, event_log, got 'magic'"),
        (
            {f"{PREFIX}queueCapacty": "1"},
            {},
            f"{PREFIX}queueCapacty: there is no such setting; is {PREFIX}queueCapacity meant?",
        ),
        ({f"{PREFIX}zzz": "1"}, {}, f"{PREFIX}zzz: there is no such setting"),
        ({}, {"capacity": 3}, f"capacity: there is no such setting; is {PREFIX}queueCapacity meant?"),
        ({f"{PREFIX}http.enabled": "maybe"}, {}, f"{PREFIX}http.enabled: expected true or false, got 'maybe'"),
        (
            {f"{PREFIX}http.port": "65536"},
            {},
            f"{PREFIX}http.port: expected a whole number from 0 to 65535, got '65536'",
        ),
        (
            {f"{PREFIX}http.port": "9" * 5_000},
            {},
            f"{PREFIX}http.port: expected a whole number from 0 to 65535, got '{'9' * 39}…'",
        ),
        ({f"{PREFIX}http.port": "-1"}, {}, f"{PREFIX}http.port: expected a whole number from 0 to 65535, got '-1'"),
        (
            {f"{PREFIX}fileSd.path": "/sd/drivers.txt"},
            {},
            f"{PREFIX}fileSd.path: the name must end in .json, or Prometheus does not read the file",
        ),
    ]
)  # fmt: skip
def test_what_cannot_be_used_is_reported(properties: dict[str, str], options: dict[str, Any], problem: str) -> None:
    """An unusable property is reported with the nearest right one, and its default is used."""
    settings, problems = resolve(properties, options)
    assert [str(error) for error in problems] == [problem]
    assert settings == ListenerSettings()


@pytest.mark.parametrize(
    ("parse", "value", "result"),
    [
        (settings.flag, "true", True),
        (settings.flag, " FALSE ", False),
        (settings.number(1, 10), "1", 1),
        (settings.number(1, 10), " 10 ", 10),
        (settings.number(1, 10), "2.5", "expected a whole number from 1 to 10, got '2.5'"),
        (settings.number(1, 10), "٣", "expected a whole number from 1 to 10, got '٣'"),
        (settings.seconds(0.5, 60), "60", 60.0),
        (settings.seconds(0.5, 60), "1s", "expected seconds from 0.5 to 60, got '1s'"),
        (settings.seconds(0.5, 60), "nan", "expected seconds from 0.5 to 60, got 'nan'"),
        (settings.text, "  ", "expected a text, got nothing"),
    ]
)  # fmt: skip
def test_values_are_checked(parse: settings.Parse, value: str, result: str | float) -> None:
    """Values are checked with inclusive bounds, and a message says what was expected."""
    if isinstance(result, str):
        with pytest.raises(ValueError) as refused:
            parse(value)
        assert str(refused.value) == result
    else:
        assert parse(value) == result


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endpoint", "collector:4318"),
        ("endpoint", "ftp://geheim"),
        ("endpoint", "http://user:geheim@collector:4318"),
        ("endpoint", "http://collector:geheim"),
        ("secretHeaders", "geheim"),
        ("secretHeaders", "a=geheim%0A"),
        ("secretHeaders", "=geheim"),
        ("secretHeaders", "geheim=a,Geheim=b"),
        ("protocol", "http/json"),
        ("intervalSeconds", "0"),
        ("intervalSeconds", "nan"),
        ("enabled", "perhaps"),
        ("secretHeader", "key=geheim"),
    ],
)
def test_nothing_is_pushed_to_another_place(name: str, text: str) -> None:
    """The push is off where any setting of OTLP cannot be used; its problem shows no secret."""
    properties = {f"{PREFIX}otlp.enabled": "true", f"{PREFIX}otlp.{name}": text}
    settings, (problem,) = resolve(properties, {})
    assert settings.otlp_enabled is False
    assert problem.name == f"{PREFIX}otlp.{name}"
    assert "geheim" not in str(problem)


def test_a_secret_is_in_no_representation() -> None:
    """Neither a header's value nor a key in the URL is in a representation of the settings."""
    endpoint = "http://collector:4318/x?key=geheim"
    headers = "Authorization=Bearer%20geheim%3D, X-Key = 1"
    properties = {f"{PREFIX}otlp.endpoint": endpoint, f"{PREFIX}otlp.secretHeaders": headers}
    settings, problems = resolve(properties, {})
    assert problems == ()
    assert settings.otlp_endpoint == endpoint
    assert settings.otlp_secret_headers == {"authorization": "Bearer geheim=", "x-key": "1"}
    assert "geheim" not in repr(settings)


DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, begin: str) -> list[str]:
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith(begin)]


def row(family: Family) -> str:
    """Return a row of the page: all families have the label `app`, and the name gives the type."""
    total = "_total" if family.type is FamilyType.COUNTER else ""
    labels = ", ".join(f"`{label}`" for label in family.labels if label != "app")
    name = family.name.removesuffix(total) + total
    return f"- `{name}`{f' ({labels})' if labels else ''}: {family.help}"


def test_every_family_is_documented() -> None:
    """The page has each family as Prometheus shows it, in the order of the catalog."""
    families = tuple(job_families())
    assert rows("reference/spark-metrics.md", "- `spark_") == [*map(row, families)]
    assert all("app" in family.labels for family in families)
    assert {family.type for family in families} == {FamilyType.COUNTER, FamilyType.GAUGE}


def test_every_cause_is_documented() -> None:
    """The page has each cause in the order of their evidence."""
    documented = [line.split("`")[1] for line in rows("guides/spark-report.md", "- `")]
    assert documented == [cause.value for cause in FailureCause]
