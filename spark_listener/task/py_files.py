"""The modules that tasks import, as a zip for `--py-files` or `SparkContext.addPyFile`."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from quotascope.clients import accounting

HOME = "_quotascope_driver"
"""The module with the accumulator to which tasks send their counts."""
_FOLDERS = {
    "quotascope/clients/accounting": Path(accounting.__file__).parent,
    "quotascope/spark_listener/task": Path(__file__).parent,
}
_PARENTS = ("quotascope/clients", "quotascope/spark_listener")
_GIVE_WAY = b"\n\ngive_way(sys.modules[__name__])\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same content is the same file


def write_py_files(path: str | Path | IO[bytes], *, accumulator: int | None = None) -> None:
    """
    Write the zip, which works on Python 3.8 with or without quotascope installed.

    Args:
        path: a file with a name in ".zip", as Spark requires; or a binary file object.
        accumulator: the number of the driver's accumulator, with which `throttle_scope()` needs no `JobThrottles`.

    Raises:
        OSError: the file cannot be written.

    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in _entries(accumulator):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)


def temporary_py_files(accumulator: int | None) -> str:
    """
    Return the path of such a zip, which exists as long as this process lives.

    Spark's driver serves the file itself.
    """
    folder = tempfile.mkdtemp(prefix="quotascope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "quotascope_tasks.zip")
    write_py_files(path, accumulator=accumulator)
    return str(path)


def _entries(accumulator: int | None) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files in the zip."""
    if accumulator is not None:
        yield f"{HOME}.py", f"ACCUMULATOR = {accumulator}\n".encode()
    if not Path(__file__).is_file():  # this driver runs from such a zip; so do its tasks
        return
    # a package without a module, which Python before 3.13 finds by this entry only
    yield "quotascope/", b""
    parent = Path(__file__).with_name("parent.py").read_bytes()
    for name in _PARENTS:
        yield f"{name}/__init__.py", parent + _GIVE_WAY
    for name, folder in _FOLDERS.items():
        for module in sorted(folder.glob("*.py")):
            yield f"{name}/{module.name}", module.read_bytes()
