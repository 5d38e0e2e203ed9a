"""
Installs Grafana's npm packages into a cache outside this folder, and makes a page of them: ``python -m tests.dashboards.provision``.

The versions of ``grafana/package.json`` are exact; the names of the folders change with what is in them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

SOURCES = Path(__file__).parent / "grafana"
_PACKAGES: Final = ("package.json",)
_PAGE: Final = (*_PACKAGES, "board.html", "board.jsx")
_ESBUILD: Final = (
    *("node_modules/.bin/esbuild", "board.jsx", "--bundle", "--outfile=board.js"),
    *("--format=iife", "--jsx=automatic", "--minify", "--log-level=error"),
    *('--define:process.env.NODE_ENV="production"', "--define:global=window"),
    *(f"--loader:.{each}=dataurl" for each in ("png", "svg", "ttf", "wasm", "woff")),
    # scenes wants version 6 of the router and ui 5 with what makes a 6 of it: a page of one address needs no more than 6
    *("--loader:.woff2=dataurl", "--alias:react-router-dom-v5-compat=react-router-dom"),
)
_ICONS: Final = "node_modules/@grafana/ui/dist/public/img/icons"
_FONTS: Final = {
    "400-normal": "Inter-Regular",
    "400-italic": "Inter-Italic",
    "500-normal": "Inter-Medium",
}


def installed() -> Path:
    """Where the packages are, or will be."""
    return _cached("grafana", _PACKAGES)


def page() -> Path:
    """Where the page that draws dashboards is, or will be: a folder with `board.html`."""
    return _cached("grafana-page", _PAGE)


def _cached(name: str, sources: tuple[str, ...]) -> Path:
    content = b"".join((SOURCES / each).read_bytes() for each in sources)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = hashlib.sha256(content).hexdigest()[:12]
    return cache / "quotascope" / f"{name}-{version}"


def _install(folder: Path) -> None:
    shutil.copy(SOURCES / "package.json", folder)
    # peers, as some of them want versions that are not there
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--legacy-peer-deps")
    command = ["npm", "install", *options, "--ignore-scripts"]
    subprocess.run(command, cwd=folder, check=True)


def _bundle(folder: Path) -> None:
    for each in _PAGE:
        shutil.copy(SOURCES / each, folder)
    packages = folder / "node_modules"
    packages.symlink_to(installed() / "node_modules")
    subprocess.run([*_ESBUILD, "--preserve-symlinks"], cwd=folder, check=True)
    shutil.copytree(folder / _ICONS, folder / "public" / "build" / "img" / "icons")
    fonts = folder / "public" / "fonts" / "inter"
    fonts.mkdir(parents=True)
    for style, name in _FONTS.items():
        font = f"@fontsource/inter/files/inter-latin-{style}.woff2"
        shutil.copy(packages / font, fonts / f"{name}.woff2")
    packages.unlink()


def main() -> int:
    """Install and make what is not there; a broken attempt leaves nothing that looks whole."""
    steps: tuple[tuple[Path, Callable[[Path], None], str], ...] = (
        (installed(), _install, "installing Grafana's npm packages into"),
        (page(), _bundle, "making a page of them in"),
    )
    for folder, make, what in steps:
        if folder.exists():
            continue
        sys.stderr.write(f"{what} {folder}\n")
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            make(unfinished)
        except subprocess.CalledProcessError as error:
            return error.returncode
        unfinished.rename(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
