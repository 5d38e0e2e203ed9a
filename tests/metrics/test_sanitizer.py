"""User names in tags."""

import pytest
from hypothesis import given
from tests.strategies import broken_texts, texts

from quotascope.metrics import MalformedName, desanitize, sanitize


@pytest.mark.parametrize(
    ("name", "sanitized"),
    [
        ("a b", "a%20b"),
        ("😀", "%F0%9F%98%80"),
        ("\ud83d\ude00", "%F0%9F%98%80"),
        ("\ud83d", "%3F"),
        ("\ude00\ud83d", "%3F%3F"),
        ("\n\x00", "%0A%00"),
        ("٣", "%D9%A3"),
    ],
)
def test_as_kafka_writes_it(name: str, sanitized: str) -> None:
    """Figures of Kafka's own class on Java 17."""
    assert sanitize(name) == sanitized


@given(name=texts)
def test_desanitize_inverts(name: str) -> None:
    """Every name that is text comes back."""
    assert desanitize(sanitize(name)) == name


@given(name=broken_texts)
def test_any_name_can_be_sanitized(name: str) -> None:
    """Halves of surrogate pairs are lost, but do no harm; what results is plain ASCII."""
    sanitized = sanitize(name)
    assert sanitized.isascii()
    assert sanitize(desanitize(sanitized)) == sanitized


def test_what_other_encoders_write_is_decoded() -> None:
    """A plus is a space; a name that was no text is shown as far as it can be."""
    assert desanitize("a+b%2bc") == "a b+c"
    assert desanitize("%FFa%E2%82") == "\ufffda\ufffd"


@pytest.mark.parametrize("text", ["%", "a%4", "%zz", "%%41", "% 1"])
def test_refuses_half_an_escape(text: str) -> None:
    """A percent sign needs two hexadecimal digits."""
    with pytest.raises(MalformedName) as caught:
        desanitize(text)
    assert caught.value.text == text
