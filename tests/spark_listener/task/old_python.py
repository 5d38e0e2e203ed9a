"""Finds the oldest Python that tasks may run on: 3.8, as on clusters of Spark 3.5."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "3.8"
VARIABLE = "QUOTASCOPE_PYTHON38"
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


class PythonMissing(Exception):
    """An error about a named Python that does not exist; the message says so."""


def pythons() -> list[str]:
    """
    Return this Python and, where there is one, the old one.

    No package registry has Python 3.8, and a machine without it checks the code by vermin alone; pytest's first lines
    say which it is.
    """
    old = old_python()
    return [sys.executable, *([old] if old else [])]


def old_python() -> str | None:
    """
    Return the path of the old Python: from the variable, in PATH, or pyenv's.

    Raises:
        PythonMissing: the variable names something else.

    """
    named = os.environ.get(VARIABLE)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{VERSION}"), *map(str, sorted(pyenv.glob(f"versions/{VERSION}.*/bin/python")))]
    for path in [named] if named else filter(None, candidates):  # pyenv's in PATH may refuse to run
        if _version(path) == VERSION:
            return path
    if named:
        raise PythonMissing(f"{VARIABLE}={named} is no Python {VERSION}")
    return None


def _version(path: str) -> str:
    try:
        process = subprocess.run([path, "-IS", "-c", _ASK], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return process.stdout.strip()
