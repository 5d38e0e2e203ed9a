"""
Processes that are writing to a table, whose files no commit lists yet and must not be taken for those of a killed run.

A writer has a file in `_writers` from before its first file until after its commit, and touches it while it lives. What
is on the disk without a commit is looked up first, then the writers, then the commits: so a file of a writer is seen as
such, or as committed.
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
Time without a sign of life after which a writer is taken for killed.

It is earlier if this machine knows that the process is gone.
"""
SKEW_NS: Final = 600 * 10**9
"""Greatest difference between clocks of machines that write the same table."""


class Writer(NamedTuple):
    """A process that is writing to a table."""

    began_ns: int
    """Time of its begin; its files are not older, but for the difference of clocks; ns since 1970."""
    about: str
    """Host and process, for people."""


@contextmanager
def writing(storages: Iterable[Storage]) -> Iterator[None]:
    """
    Keep files that are staged meanwhile from being cleaned away.

    Raises:
        NotWritten: the folder of a table cannot be written to.

    """
    name = f"{_FOLDER}/{time.time_ns():020d}-{secrets.token_hex(6)}.json"
    tables = list(storages)

    def beat() -> None:
        for storage in tables:
            with suppress(OSError):  # the next one may reach it
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
            with suppress(OSError):  # it is found dead after a while
                storage.remove(name)


def living(storage: Storage) -> list[Writer]:
    """Return the processes that write to a table now, and remove the files of dead ones. Raises OSError."""
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
    return {"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid()), "processes": _processes()}


def _is_gone(writer: dict[str, Any]) -> bool:
    """Return whether a writer is a process of this machine, and of the same container, that has ended."""
    processes = _processes()
    if processes is None or writer.get("processes") != processes:
        return False
    pid = writer.get("pid")
    return not isinstance(pid, int) or _began(pid) != writer.get("began")


@cache
def _processes() -> str | None:
    """Return the start of this machine and the namespace in which its process ids count, where Linux says so."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _began(pid: int) -> str | None:
    """Return the begin of a process in ticks since the start of the machine; None if it is unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else fields[18]
