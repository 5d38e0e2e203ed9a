from hypothesis import given
from hypothesis import strategies as st

from quotascope.cli.top.sparkline import sparkline


@given(st.lists(st.none() | st.floats(-1e9, 1e9)))
def test_one_character_for_each(parts: list[float | None]) -> None:
    """Whatever the numbers are, on every terminal."""
    assert len(sparkline(parts)) == len(parts)
    assert sparkline(parts, ascii_only=True).isascii()


def test_higher_is_fuller() -> None:
    """Full from 1 on; nothing known is nothing drawn."""
    assert sparkline([None, -1.0, 0.0, 0.3, 0.6, 0.9, 1.0, 9.0]) == " ▁▁▃▅▇██"
    assert sparkline([0.0, 1.0], ascii_only=True) == "_#"
