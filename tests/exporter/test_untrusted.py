"""Foreign text in our lines."""

from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.untrusted import one_line, shown


@given(st.text(alphabet=st.characters(), max_size=600))
def test_any_text_becomes_one_short_printable_line(text: str) -> None:
    """No terminal sequence, no line end and no page of text gets into a log."""
    line = shown(text)
    assert len(line) <= 200
    assert line.isprintable()
    line.encode()


def test_one_line() -> None:
    """Unprintable characters become escapes, long texts end in an ellipsis, and harmless texts are not changed."""
    assert one_line("a\nb\x00\u202e") == "a\\nb\\x00\\u202e"
    assert one_line("abcdef", longest=3) == "abc…"
    assert one_line("é 😀") == "é 😀"
    assert shown("No such bean: 'a'") == "No such bean: 'a'"
