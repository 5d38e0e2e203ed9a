"""
Registration of processes that write to a table, so that no cleanup removes their uncommitted files.

A writer has a file in `_writers` from before its first data file until after its commit, and touches it regularly. A
cleanup lists uncommitted files first, then the writers, and then the commits: so the file of a writer is either
protected by its writer or committed.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import NotWritten
from ..meanwhile import repeated
from .storage import Storage

_FOLDER: Final = "_writers"
"""Folder beside the log; programs that clean up a Delta table leave names that begin with an underscore."""
_BEAT_S: Final = 60
"""Time between two signs of life."""
DEAD_S: Final = 3_600
"""
Time without a sign of life after which a writer counts as killed.

A writer of this machine counts as killed as soon as its process is gone.
"""
SKEW_NS: Final = 600 * 10**9
"""Largest difference between the clocks of machines that write to the same table."""


class Writer(NamedTuple):
    """A process that is writing to a table."""

    began_ns: int
    """Time of its begin, ns since 1970. Its files are not older, apart from `SKEW_NS`."""
    about: str
    """Host and process as text for people."""


@contextmanager
def writing(storages: Iterable[Storage]) -> Iterator[None]:
    """
    Protect files that are staged in the block from being removed by a cleanup.

    Raises:
        NotWritten: the folder of a table cannot be written to.

    """
    name = f"{_FOLDER}/{time.time_ns():020d}-{secrets.token_hex(6)}.json"
    tables = list(storages)

    def beat() -> None:
        """Write the signs of life in all tables."""
        for storage in tables:
            with suppress(OSError):  # the next sign of life may succeed
                _sign(storage, name)

    try:
        for storage in tables:
            try:
                storage.filesystem.create_dir(_FOLDER, recursive=True)
                _sign(storage, name)
            except OSError as error:
                raise NotWritten(storage.uri, error) from error
        with repeated(beat, _BEAT_S, "quotascope signs of life"):
            yield
    finally:
        for storage in tables:
            with suppress(OSError):  # without signs of life, it counts as killed after a while
                storage.remove(name)


def living(storage: Storage) -> list[Writer]:
    """Return the processes that write to a table now, and remove the registrations of killed ones. Raises OSError."""
    now_s = time.time()
    writers: list[Writer] = []
    for info in storage.listing(_FOLDER):
        began, _, suffix = info.base_name.partition("-")
        if not (began.isdigit() and suffix.endswith(".json")):
            continue
        content = _read(storage, info.path)
        if content is None:
            continue  # it has just ended
        silent_s = now_s - (info.mtime_ns or 0) / 1e9
        if silent_s > DEAD_S or _is_gone(content):
            storage.remove(info.path)
        else:
            writers.append(Writer(int(began), f"process {content.get('pid', '?')} of {content.get('host', '?')}"))
    return writers


def _sign(storage: Storage, name: str) -> None:
    """Write the file of this process again, as a sign of life."""
    with storage.filesystem.open_output_stream(name) as stream:
        stream.write(json.dumps(_self()).encode())


def _read(storage: Storage, path: str) -> dict[str, Any] | None:
    """
    Return a writer's description of itself; None if the writer has ended.

    It is empty if it may not be read, or is being written.
    """
    try:
        with storage.filesystem.open_input_stream(path) as stream:
            content: Any = json.loads(stream.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _self() -> dict[str, Any]:
    """Return the description of this process that its file has."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid()), "processes": _processes()}


def _is_gone(writer: dict[str, Any]) -> bool:
    """Return whether a writer was a process of this machine and container, and has ended."""
    processes = _processes()
    if processes is None or writer.get("processes") != processes:
        return False
    pid = writer.get("pid")
    return not isinstance(pid, int) or _began(pid) != writer.get("began")


@cache
def _processes() -> str | None:
    """Return an id of this boot of the machine and of its namespace of process ids; None if it is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _began(pid: int) -> str | None:
    """Return the start time of a process in ticks since the boot; None if the process is gone, or it is unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # proc_pid_stat(5): after the name of the program in parentheses, the state is field 3, and the start is field 22
    state, *fields = text.rpartition(")")[2].split()
    is_over = state in {"Z", "X"}  # a zombie, or dead
    return None if is_over else fields[18]
