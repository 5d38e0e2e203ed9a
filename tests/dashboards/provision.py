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
    *(f"--loader:.{suffix}=dataurl" for suffix in ("png", "svg", "ttf", "wasm", "woff", "woff2")),
)
_ICONS: Final = "node_modules/@grafana/ui/dist/public/img/icons"
_FONTS: Final = {
    "400-normal": "Inter-Regular",
    "400-italic": "Inter-Italic",
    "500-normal": "Inter-Medium",
}


def installed() -> Path:
    """Return the folder of the packages, which may not exist yet."""
    return cached("grafana", SOURCES / "package.json")


def page() -> Path:
    """Return the folder with `board.html`, the page that draws dashboards; it may not exist yet."""
    return cached("grafana-page", *(SOURCES / name for name in _PAGE))


def _install(folder: Path) -> None:
    folder.mkdir()
    shutil.copy(SOURCES / "package.json", folder)
    # peers, as some of them want versions that are not there
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--legacy-peer-deps", "--ignore-scripts")
    run("npm", "install", *options, "--prefix", folder, missing="install Node.js with npm")


def _bundle(folder: Path) -> None:
    folder.mkdir()
    for file in _PAGE:
        shutil.copy(SOURCES / file, folder)
    packages = folder / "node_modules"
    packages.symlink_to(installed() / "node_modules")
    # scenes needs version 6 of the router, ui version 5 and its adapter to 6: a page of one address needs only 6
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
