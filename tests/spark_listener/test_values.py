import pytest

from quotascope.spark_listener import values


@pytest.mark.parametrize(
    ("value", "meaning"), [("true", True), (" FALSE ", False), ("True", True)]
)
def test_flags_are_true_or_false(value: str, *, meaning: bool) -> None:
    """In any case, as Spark reads its own."""
    assert values.flag(value) is meaning


def test_numbers_are_within_their_bounds() -> None:
    """Both bounds are allowed."""
    read = values.number(1, 10)
    assert [read("1"), read(" 10 ")] == [1, 10]


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (values.flag, "yes", "expected true or false, got 'yes'"),
        (values.number(1, 10), "0", "expected a whole number from 1 to 10, got '0'"),
        (
            values.number(1, 10),
            "2.5",
            "expected a whole number from 1 to 10, got '2.5'",
        ),
        (values.number(1, 10), "٣", "expected a whole number from 1 to 10, got '٣'"),
        (values.seconds(0.5, 60), "1s", "expected seconds from 0.5 to 60, got '1s'"),
        (values.seconds(0.5, 60), "nan", "expected seconds from 0.5 to 60, got 'nan'"),
        (values.one_of("a", "b"), "c", "expected a, b, got 'c'"),
        (values.text, "  ", "expected a text, got nothing"),
    ],
)
def test_other_values_are_refused(
    read: values.Reading, value: str, problem: str
) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError) as refused:
        read(value)
    assert str(refused.value) == problem


def test_long_values_are_not_repeated() -> None:
    """A message stays readable."""
    with pytest.raises(ValueError) as refused:
        values.flag("x" * 10_000)
    assert len(str(refused.value)) < 100
