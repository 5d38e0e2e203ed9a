"""
The command `quotascope` without its imports, which take longer than most commands.

A server has done them, and forks for each.

Run as a program, this is the server. A small program stands for the command: it hands its arguments, folder,
environment and streams to the server, and ends as the command in the fork does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

_ROOMS = ("alerts", "cli", "clients", "dashboards", "exporter", "pipeline", "quotas")
_NOT_FORKED = "quotascope.exporter.otlp"
"""gRPC begins threads, which a fork does not have."""
_COMMAND = """\
#!{python} -SE
import json, os, socket, sys
arguments = sys.argv[1:]
if any(word.startswith("kafka://") for word in arguments):  # tests/spark/pipeline has the stream
    arguments.append("--help")
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"!"], [0, 1, 2])
server.sendall(json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
ended = server.recv(1)
sys.exit(ended[0] if ended else "quotascope: the server of commands is gone")
"""


@contextmanager
def preloaded(command: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Run a program that stands for `quotascope` within the block."""
    address = f"\0quotascope-{os.getpid()}-{id(command)}"  # no file: a path may be too long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        command.write_text(_COMMAND.format(python=sys.executable, address=address))
        command.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            env=environ, pass_fds=[listening.fileno()], start_new_session=True
        )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # with commands that did not end
        server.wait()


def _serve(listening: socket.socket) -> None:
    """Return in each fork that runs a command, which then has its arguments, folder, environment and streams."""
    while True:
        asking, _ = listening.accept()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            break
        asking.close()
    _, streams, _, _ = socket.recv_fds(asking, 1, 3)
    with asking.makefile("rb") as request:
        arguments, folder, environ = json.load(request)
    if command := os.fork():
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(command, 0)
        asking.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # those of the server know where it reads and writes; these stay open until the command ends
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    asking.close()
    listening.close()
    sys.argv[1:] = arguments
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)


if __name__ == "__main__":
    for room in _ROOMS:
        package = import_module(f"quotascope.{room}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_NOT_FORKED):
                import_module(module.name)
    gc.freeze()  # no fork copies them to look for garbage
    _serve(socket.socket(fileno=int(sys.argv[1])))

    from quotascope.cli.main import main

    main()
