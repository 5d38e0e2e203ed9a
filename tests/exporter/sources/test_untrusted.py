"""Foreign text in our messages."""

from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.sources.untrusted import shown


@given(st.text(alphabet=st.characters(), max_size=600))
def test_any_text_becomes_one_short_printable_line(text: str) -> None:
    """No terminal sequence, no line end and no page of text gets into a log."""
    line = shown(text)
    assert len(line) <= 200
    assert line.isprintable()
    line.encode()


def test_plain_text_stays_as_it_is() -> None:
    """What is harmless is not changed."""
    assert shown("No such bean: 'a'") == "No such bean: 'a'"
