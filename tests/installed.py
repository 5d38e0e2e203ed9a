"""The packages that pip installs, and a process that has nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parents[1]


def closure(requirements: Iterable[str]) -> set[NormalizedName]:
    """Return the packages that these need on this machine, themselves included, by their metadata."""
    names, left = set[NormalizedName](), [(Requirement(requirement), {""}) for requirement in requirements]
    while left:
        package, extras = left.pop()
        name = canonicalize_name(package.name)
        if package.marker is not None and not any(package.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if name not in names or package.extras:
            names.add(name)
            wanted = {"", *package.extras}
            needed = metadata.requires(name) or ()
            left.extend((Requirement(each), wanted) for each in needed)
    return names


class Installed:
    """A folder with links to the packages of these requirements and to our rooms (all unless named)."""

    def __init__(
        self, folder: Path, requirements: Iterable[str] = ("quotascope",), rooms: Iterable[str] = ("*",)
    ) -> None:
        self._folder = folder
        for package in closure(requirements) - {"quotascope"}:
            for name in {file.parts[0] for file in metadata.files(package) or ()}:
                source = metadata.distribution(package).locate_file(name)
                if name not in {"..", "__pycache__"}:
                    (folder / name).symlink_to(str(source))
        ours = folder / "quotascope"
        ours.mkdir()
        for room in rooms:
            for link in (ROOT / ".imports" / "quotascope").glob(room):
                (ours / link.name).symlink_to(link.resolve())

    def run(self, code: str, *arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python code there, with nothing to import but this and the standard library."""
        # -I alone would keep the environment's packages, -S removes them
        start = f"import sys; sys.path.insert(0, {str(self._folder)!r})\n{code}"
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", start, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "COLUMNS": "200"},
        )
