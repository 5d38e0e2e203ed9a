"""
The releases of Prometheus that tests run: Debian's, and the newest, which `python -m tests.prometheus.releases` builds.

Go builds Prometheus and promtool from the module of `go.mod` into `prometheus-<hash>` of the cache, which takes four
minutes on two cores, once; without the web pages and without all ways to discover targets but files and HTTP: these
take most of the time and of the downloads, and no test needs them.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.collector.provision import go, run
from tests.provisioning import NotFetched, cached, command, existing, fetched

HERE: Final = Path(__file__).parent
MODULE: Final = "github.com/prometheus/prometheus"
PROGRAMS: Final = ("prometheus", "promtool")
_PLAIN: Final = "-dwarf=false"
BUILD: Final = (
    *("build", "-mod=readonly", "-trimpath", "-tags=remove_all_sd", "-ldflags=-s -w"),
    *(f"-gcflags=all=-N -l {_PLAIN}", f"-gcflags=std={_PLAIN}", f"-gcflags={MODULE}/...={_PLAIN}"),
)
"""
Flags that optimize Prometheus's own packages and the standard library alone.

promtool computes for a minute in each run of the tests.
"""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Prometheus, by the name that tests have in their ids."""

    name: str

    def program(self, name: str) -> str:
        """Return the path of one of `PROGRAMS`. Raises `NotFetched` when it is not there."""
        if self is NEWEST:
            return str(existing(_folder(), "newest Prometheus", "make services") / name)
        executable = shutil.which(name)
        if executable is None:
            raise NotFetched(f"no `{name}`: run `make services`")
        return executable

    @property
    def version(self) -> str:
        """The version that its promtool reports, such as ``2.42.0``."""
        return _version(self.program("promtool"))

    def __str__(self) -> str:
        return self.name


OLDEST_VERSION: Final = "2.42.0"
"""Debian's, the oldest that the documentation names."""
OLDEST: Final = Release("oldest")
"""The one that is installed."""
NEWEST: Final = Release("newest")
"""
The newest of Prometheus 3 that was tested.

Ranges and the lookback of selectors leave out their older end, unlike before 3.0.
"""
RELEASES: Final = (OLDEST, NEWEST)


def newest_version() -> str:
    """
    Return the version of `NEWEST` as Prometheus writes it: v0.316.0 of its module is 3.16.0.

    Raises:
        ValueError: `go.mod` does not require the module.

    """
    version_match = re.search(
        rf"{re.escape(MODULE)} v0\.(\d)(\d\d)\.(\d+)", (HERE / "go.mod").read_text(encoding="utf-8")
    )
    if version_match is None:
        raise ValueError(f"{HERE / 'go.mod'} does not require {MODULE} v0.3MM.P")
    major, minor, patch = map(int, version_match.groups())
    return f"{major}.{minor}.{patch}"


@cache
def _version(promtool: str) -> str:
    done = subprocess.run([promtool, "--version"], capture_output=True, text=True, check=True)
    version_match = re.search(r"version (\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return version_match[1] if version_match else ""


def _folder() -> Path:
    return cached("prometheus", HERE / "go.mod", HERE / "go.sum", *BUILD)


def _build(target: Path) -> None:
    # promtool takes its version from the linker
    version = f"-X github.com/prometheus/common/version.Version={newest_version()}"
    build = [f"{each} {version}" if each.startswith("-ldflags") else each for each in BUILD]
    run([go(), *build, "-o", f"{target}/", *(f"{MODULE}/cmd/{name}" for name in PROGRAMS)], HERE)


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(_folder(), _build)))
