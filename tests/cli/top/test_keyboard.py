import pytest

from quotascope.cli.top.keyboard import keys_in


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("sq", ["s", "q"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~\x1b[1~", ["page up", "page down", "home"]),
        ("\x1b", ["escape"]),
        ("/ä😀\r", ["/", "ä", "😀", "enter"]),
        ("\x7f\x08\x04", ["backspace", "backspace", "end"]),
        ("\x1b[15~\x1b[1;5Cx", ["x"]),
    ],
)
def test_keys_are_told_apart(text: str, keys: list[str]) -> None:
    """Unknown ones are not taken for characters."""
    assert keys_in(text) == keys
