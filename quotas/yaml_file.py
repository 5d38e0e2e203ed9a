"""A file of YAML that a person wrote, and messages in terms of that file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

STDIN: Final = Path("-")
"""Stands for standard input."""


def named(path: Path) -> str:
    """How messages call a file."""
    return "standard input" if path == STDIN else str(path)


def text_of(path: Path) -> str:
    """The text of a file, or of standard input for `-`. Raises ``OSError`` and ``UnicodeDecodeError``."""
    data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    return data.decode("utf-8-sig")


@contextmanager
def refusing(refused: Callable[[str], Exception]) -> Iterator[None]:
    """Raise what is made of the problem when the file that is read within the block cannot be, or its YAML is none."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
    except yaml.MarkedYAMLError as error:
        problem = _syntax(error)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"is not valid YAML: {' '.join(str(error).split())}"
    else:
        return
    raise refused(problem) from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}: " if mark else ""
    return f"{where}not valid YAML: {error.problem or error.context}"
