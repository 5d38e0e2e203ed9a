import math

import pytest

from quotascope.spark_listener.sources import json_text


def test_event_is_read() -> None:
    """As what it was before it was text."""
    assert json_text.event('{"Event": "x", "n": [1]}') == {"Event": "x", "n": [1]}


def test_numbers_that_are_none_are_read() -> None:
    """Spark writes NaN, which JSON does not know."""
    found = json_text.event('{"value": NaN}')
    assert found is not None
    assert math.isnan(found["value"])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "null", "\x00", '{"a":' + "[" * 100_000]
)
def test_what_is_no_event_is_none(text: str) -> None:
    """It raises nothing."""
    assert json_text.event(text) is None
