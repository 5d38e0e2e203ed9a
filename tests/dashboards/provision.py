"""
Installs Grafana's npm packages into a cache outside this folder: ``python -m tests.dashboards.provision``.

The versions of ``grafana/package.json`` are exact; the folder's name changes with them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent / "grafana"


def installed() -> Path:
    """Where the packages are, or will be."""
    content = (SOURCES / "package.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = hashlib.sha256(content).hexdigest()[:12]
    return cache / "quotascope" / f"grafana-{version}"


def main() -> int:
    """Install unless it is there; a broken attempt leaves nothing that looks whole."""
    folder = installed()
    if folder.exists():
        return 0
    sys.stderr.write(f"installing Grafana's npm packages into {folder}\n")
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    shutil.copy(SOURCES / "package.json", unfinished)
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    done = subprocess.run([*command, "--ignore-scripts"], cwd=unfinished, check=False)
    if done.returncode == 0:
        unfinished.rename(folder)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
