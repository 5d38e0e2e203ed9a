from __future__ import annotations

from pathlib import Path

import pytest

from quotascope.exporter.config import CardinalityConfig, Config, Excluded, load_config
from quotascope.exporter.errors import ConfigError


def load(tmp_path: Path, text: str, **environ: str) -> CardinalityConfig:
    """The section, from a file and the environment."""
    path = tmp_path / "q.yaml"
    path.write_text(text)
    return load_config(path, environ).cardinality


def test_defaults() -> None:
    """There is a cap, and nothing else is left out."""
    config = Config().cardinality
    assert config.max_entities == 10_000
    assert config.excluded is Excluded.OVERFLOW
    assert config.detail_above is config.idle_after_seconds is None


def test_patterns_of_the_environment_are_one_in_a_line(tmp_path: Path) -> None:
    """A pattern may hold commas and spaces."""
    config = load(
        tmp_path, "", QUOTASCOPE_CARDINALITY__EXCLUDE_USERS="CN=a b.*\nc{1,2}"
    )
    assert config.exclude_users == ("CN=a b.*", "c{1,2}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "cardinality:\n  include_users: ['a', '(']\n",
            "line 2: cardinality.include_users[1] '(' is no RE2 expression: missing ): (",
        ),
        (
            "cardinality:\n  max_entities: 0\n",
            "line 2: cardinality.max_entities: expected greater than or equal to 1, got 0",
        ),
        (
            "cardinality:\n  max_entity: 5\n",
            "line 2: unknown key 'max_entity' under cardinality; did you mean 'max_entities'?",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, text: str, told: str
) -> None:
    """A wrong pattern is found before the first scrape."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert caught.value.problems == (told,)
