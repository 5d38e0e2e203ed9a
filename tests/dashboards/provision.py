"""
Installs Grafana's npm packages, and makes a page of them: ``python -m tests.dashboards.provision``.

The versions of ``grafana/package.json`` are exact; the names of the folders in the cache change with what is in them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from tests.provisioning import cached, command, fetched, run

SOURCES = Path(__file__).parent / "grafana"
_PAGE: Final = ("package.json", "board.html", "board.jsx")
_ESBUILD: Final = (
    *("--bundle", "--preserve-symlinks", "--format=iife", "--jsx=automatic", "--minify", "--log-level=error"),
    *('--define:process.env.NODE_ENV="production"', "--define:global=window"),
    *(f"--loader:.{each}=dataurl" for each in ("png", "svg", "ttf", "wasm", "woff", "woff2")),
)
_ICONS: Final = "node_modules/@grafana/ui/dist/public/img/icons"
_FONTS: Final = {
    "400-normal": "Inter-Regular",
    "400-italic": "Inter-Italic",
    "500-normal": "Inter-Medium",
}


def installed() -> Path:
    """Where the packages are, or will be."""
    return cached("grafana", SOURCES / "package.json")


def page() -> Path:
    """Where the page that draws dashboards is, or will be: a folder with `board.html`."""
    return cached("grafana-page", *(SOURCES / each for each in _PAGE))


def _install(folder: Path) -> None:
    folder.mkdir()
    shutil.copy(SOURCES / "package.json", folder)
    # peers, as some of them want versions that are not there
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--legacy-peer-deps", "--ignore-scripts")
    run("npm", "install", *options, "--prefix", folder, missing="install Node.js with npm")


def _bundle(folder: Path) -> None:
    folder.mkdir()
    for each in _PAGE:
        shutil.copy(SOURCES / each, folder)
    packages = folder / "node_modules"
    packages.symlink_to(installed() / "node_modules")
    # scenes wants version 6 of the router and ui 5 with what makes a 6 of it: a page of one address needs no more than 6
    router = f"--alias:react-router-dom-v5-compat={packages}/react-router-dom"
    run(f"{packages}/.bin/esbuild", f"{folder}/board.jsx", f"--outfile={folder}/board.js", *_ESBUILD, router)
    shutil.copytree(folder / _ICONS, folder / "public" / "build" / "img" / "icons")
    fonts = folder / "public" / "fonts" / "inter"
    fonts.mkdir(parents=True)
    for style, name in _FONTS.items():
        font = f"@fontsource/inter/files/inter-latin-{style}.woff2"
        shutil.copy(packages / font, fonts / f"{name}.woff2")
    packages.unlink()


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(installed(), _install), lambda: fetched(page(), _bundle)))
