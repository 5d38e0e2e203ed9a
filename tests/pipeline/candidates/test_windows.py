"""Windows as command lines and files give them."""

import pytest

from quotascope.metrics import WindowConfig
from quotascope.pipeline.candidates.windows import BadWindows, windows_of_text


def test_their_number_and_their_length() -> None:
    """As in `quota.window.num` and `quota.window.size.seconds`."""
    assert windows_of_text("21x2") == WindowConfig(samples=21, window_seconds=2)


@pytest.mark.parametrize("text", ["", "11", "11x", "x1", "-1x1", "1.5x1", "٣x1", "1x1x1", "9" * 400 + "x1"])  # fmt: skip
def test_anything_else_is_told_how_to_say_it(text: str) -> None:
    """The message shows a right one, and no more of a wrong one than fits."""
    with pytest.raises(BadWindows, match="such as 11x1") as caught:
        windows_of_text(text)
    assert len(str(caught.value)) < 140


@pytest.mark.parametrize("text", ["0x1", "11x0", "10001x1", "11x86401"])
def test_windows_that_cannot_be_are_refused(text: str) -> None:
    """Kafka takes no windows below 1, and a replay holds all of them in memory."""
    with pytest.raises(BadWindows):
        windows_of_text(text)
