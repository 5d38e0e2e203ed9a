"""Which files a list of paths means."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from ..errors import UnreadableLog

STANDARD_INPUT: Final = "-"


def log_files(paths: Iterable[str], names: str = "*") -> list[str]:
    """
    Absolute paths of files, those of a folder by name, each once; `-` stands for standard input and stays.

    Hidden files of folders are left out. Raises `UnreadableLog` for a path that is not there, or a folder without a file of such a name.
    """
    return list(dict.fromkeys(_all(paths, names)))


def _all(paths: Iterable[str], names: str) -> Iterator[str]:
    for path in paths:
        yield from [path] if path == STANDARD_INPUT else _of(Path(path), names)


def _of(path: Path, names: str) -> list[str]:
    if not path.is_dir():
        if not path.exists():
            raise UnreadableLog(str(path), "there is no such file or folder")
        return [str(path.absolute())]
    found = [
        str(file.absolute())
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and fnmatch(file.name, names)
        and not any(
            part.startswith((".", "_")) for part in file.relative_to(path).parts
        )
    ]
    if not found:
        raise UnreadableLog(str(path), f"no file in this folder is called {names}")
    return found
