"""The command line, run in this process: most commands take longer to start than to work."""

import gc
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import structlog

from quotascope.cli.main import main

COMMAND = Path(sys.executable).with_name("quotascope")
"""The installed command, for what needs a process of its own."""


def exit_code() -> int:
    """Return the exit code of the command of `sys.argv`."""
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    assert isinstance(code, int)
    return code


@contextmanager
def logging_kept() -> Iterator[None]:
    """Restore the settings of logging, which commands configure."""
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    handlers, filters, level, propagate = root.handlers[:], root.filters[:], root.level, py4j.propagate
    try:
        yield
    finally:
        root.handlers[:], root.filters[:] = handlers, filters
        root.setLevel(level)
        py4j.propagate = propagate
        structlog.reset_defaults()


def run(*arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as in a process of its own, with no other log handler and only these settings."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words = ["quotascope", *map(str, arguments)]
    with (
        pytest.MonkeyPatch.context() as patch,
        logging_kept(),
        redirect_stdout(out),
        redirect_stderr(err),
        _left_behind(),
    ):
        for name in [name for name in os.environ if name.startswith("QUOTASCOPE_")]:
            patch.delenv(name)
        for name, value in {"COLUMNS": "200", **environ}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", words)
        logging.getLogger().handlers.clear()
        code = exit_code()
    out.seek(0)
    err.seek(0)
    return subprocess.CompletedProcess(words, code, out.read(), err.read())


def run_apart(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, for state that a process keeps, such as tickets of Kerberos."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUOTASCOPE_")}
    environ["COLUMNS"] = "200"
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, env=environ)


@contextmanager
def _left_behind() -> Iterator[None]:
    """Connections that a process would have ended with are no warning of the next test."""
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            gc.collect()
            gc.unfreeze()
