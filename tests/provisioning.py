"""Programs that tests need, fetched once for all clones into `${XDG_CACHE_HOME:-~/.cache}/quotascope`."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

JDK: Final = "install Maven and a JDK 17 or newer"


class NotFetched(Exception):
    """A program that is missing and could not be fetched; the message says what to do."""


def cache() -> Path:
    """The folder of all that was fetched."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quotascope"


def cached(name: str, *sources: Path | str) -> Path:
    """The folder of what is made of these files and texts, which may not exist yet; other content has another one."""
    parts = (source.encode() if isinstance(source, str) else source.read_bytes() for source in sources)
    content = b"".join(parts)
    return cache() / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"


def existing(folder: Path, what: str, command: str) -> Path:
    """The folder. Raises `NotFetched` when it is not there."""
    if not folder.is_dir():
        raise NotFetched(f"no {what} ({folder}): run `{command}`")
    return folder


def fetched(target: Path, make: Callable[[Path], object]) -> Path:
    """
    The folder, made under another name unless it is there.

    It appears under its own name only when complete, so that an interrupted or a concurrent run does no harm.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / target.name
        make(built)
        if not target.is_dir():
            built.rename(target)
    return target


def maven(pom: Path, target: Path, properties: Mapping[str, str] | None = None) -> None:
    """Let Maven copy what a pom names, with values for its properties. Raises `NotFetched`."""
    goal = ("package", f"-Dtarget={target}", *(f"-D{name}={value}" for name, value in (properties or {}).items()))
    run("mvn", "--batch-mode", "--quiet", "--file", pom, *goal, missing=JDK)


def pip(target: Path, *packages: str) -> None:
    """Install packages into a folder of their own, without what they depend on. Raises `NotFetched`."""
    quiet = ("--quiet", "--no-deps", "--disable-pip-version-check")
    # a wheel that pip builds of Spark is mostly jars, which cannot be compressed
    quick = ("--no-compile", "--config-settings=--build-option=--compression=stored")
    run(sys.executable, "-m", "pip", "install", *quiet, *quick, "--target", target, *packages)


def run(program: str, *arguments: str | Path, missing: str = "") -> None:
    """Run a program to its end. Raises `NotFetched`, also when it is missing: then with what to do."""
    if shutil.which(program) is None:
        raise NotFetched(f"`{program}` is missing: {missing}")
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = done.stdout + done.stderr
        raise NotFetched(f"`{' '.join(command)}` failed:\n{output}")


def command(*provisions: Callable[[], Path]) -> int:
    """Fetch, print the folders, and return the exit code."""
    try:
        for provision in provisions:
            sys.stdout.write(f"{provision()}\n")
    except NotFetched as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    return 0
