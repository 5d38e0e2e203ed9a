"""
Checks a change in under a minute.

Ruff over everything, mypy over the changed files, and the unit tests of the changed rooms.

Changed is what differs from a revision, the last commit unless `--base` names another; rooms can be named instead. It
leaves out what needs a broker, Java or Prometheus and what takes over a second (the marks `real`, `java` and `slow`):
`make test` runs those.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

UNIT = "not real and not java and not slow"
WORKERS = "4"
"""Number of test processes: twice as many as two cores, since many tests wait for sockets."""
NO_TESTS = 5
"""Exit code of pytest when no test was selected."""


def changed(base: str) -> list[Path]:
    """
    Return the files that differ from a revision and still exist, with those that git does not know yet.

    Raises CalledProcessError.
    """
    commands = (
        ("git", "diff", "--name-only", "--diff-filter=d", base, "--"),
        ("git", "ls-files", "--others", "--exclude-standard"),
    )
    return sorted(
        Path(line)
        for command in commands
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    )


def test_folders(files: Iterable[Path]) -> list[str]:
    """
    Return the tests to run for these files.

    `tests/ROOM` is for files of ROOM and its tests, `tests/test_docs.py` for the documentation.
    """
    folders = set()
    for file in files:
        room = file.parts[1] if file.parts[0] == "tests" else file.parts[0]
        if Path("tests", room).exists():
            folders.add(f"tests/{room}")
        elif file.suffix == ".md":
            folders.add("tests/test_docs.py")
    return sorted(folders)


def command(program: str, *arguments: str) -> list[str]:
    """Return the command line of a program of this environment."""
    return [str(Path(sys.executable).with_name(program)), *arguments]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks; return 0 when every check passed, else 1."""
    parser = argparse.ArgumentParser(prog="make quick", description=__doc__)
    parser.add_argument("rooms", nargs="*", help="folders instead of what has changed: exporter, metrics, …")
    parser.add_argument("--base", default="HEAD", help="revision to compare with (default: %(default)s)")
    options = parser.parse_args(arguments)
    for room in options.rooms:
        if not Path(room).exists():
            parser.error(f"there is no folder or file {room}")
    began = time.monotonic()
    files = [Path(room) for room in options.rooms] or changed(options.base)
    typed = [str(file) for file in files if file.is_dir() or file.suffix == ".py"]
    folders = test_folders(files)

    failed = []
    if subprocess.run(command("ruff", "format", "--check", "--quiet", "."), check=False).returncode:
        failed.append("format (`make format` mends it)")
    if subprocess.run(command("ruff", "check", "--quiet", "."), check=False).returncode:
        failed.append("lint")
    # mypy on one core while the tests use what is left of two
    types = subprocess.Popen(command("mypy", *typed), stdout=subprocess.PIPE, text=True) if typed else None
    if folders:
        tests = command("pytest", "-q", "-n", WORKERS, "--dist", "worksteal", "-m", UNIT, *folders)
        if subprocess.run(tests, check=False).returncode not in (0, NO_TESTS):
            failed.append("tests")
    if types is not None:
        output, _ = types.communicate()
        if types.returncode:
            sys.stdout.write(output)
            failed.append("types")

    print(
        f"{', '.join(failed) or 'nothing'} failed, {time.monotonic() - began:.0f} s: ruff, mypy ({len(typed)} changed), {' '.join(folders) or 'no tests'}"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
