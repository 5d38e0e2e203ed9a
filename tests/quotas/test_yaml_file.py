from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from quotascope.quotas import STDIN, named, refusing, text_of


class _Refused(Exception):
    """What a room makes of a problem."""


def _refused(path: Path) -> str:
    with pytest.raises(_Refused) as caught, refusing(_Refused):
        yaml.safe_load(text_of(path))
    assert caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a: \xff", "is not UTF-8 text (byte 3)"),
        (b"a: 1\nb: [", "line 2: not valid YAML: "),
        (b"a: \x00", "is not valid YAML: unacceptable character"),
    ],
)
def test_problem_is_told_in_the_room_s_own_error(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    """Whatever a file holds that is no YAML, the message says what and where."""
    path = tmp_path / "file.yaml"
    path.write_bytes(data)
    assert problem in _refused(path)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """The message is the system's, without its number."""
    problem = _refused(tmp_path / "file.yaml")
    assert problem == "cannot be read: No such file or directory"


def test_what_is_no_problem_of_the_file_passes() -> None:
    """A room's own error within the block is not one of the file."""
    with pytest.raises(KeyError), refusing(_Refused):
        raise KeyError


def test_standard_input_has_a_name() -> None:
    """A file is called by its path."""
    assert named(STDIN) == "standard input"
    assert named(Path("a/b")) == "a/b"
