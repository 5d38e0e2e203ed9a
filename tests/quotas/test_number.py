import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.quotas import number, number_text


@given(st.floats(1e-9, 1e300) | st.integers(1, 2**63).map(float))
def test_a_value_is_read_back_exactly(value: float) -> None:
    """Nothing is rounded on the way through a file or a command."""
    assert number(number_text(value)) == value


@pytest.mark.parametrize(
    "text",
    ["", "nan", "inf", ".5", "0100", "1:30", "0x10", "1__0", "1e", "٣", "1 0", "1\n"],
)
def test_what_is_no_plain_number_is_none(text: str) -> None:
    """YAML and Python would make something else of most of them."""
    assert number(text) is None


def test_plain_numbers_may_be_grouped_and_have_an_exponent() -> None:
    """As people write large numbers."""
    assert number("10_485_760") == 10_485_760
    assert number("5e6") == number("5.0E+6") == 5_000_000
    assert number("-1") == -1
