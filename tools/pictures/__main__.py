"""
Pictures of the dashboards for the documentation, drawn without a Grafana.

    python -m tools.pictures http://127.0.0.1:9090 build/pictures --minutes 30 \
        --set entity:user=dana --set entity:client_id=notebook

Every query of the committed JSON is asked of that Prometheus; HTML pages are drawn from the answers, and PNG
pictures of them taken with Chromium when there is one. Looks like Grafana, is not Grafana.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .page import WIDTH, height_of, page
from .prometheus import Prometheus

GENERATED = Path(__file__).parents[2] / "dashboards" / "generated"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Draw all of them; 1 when the Prometheus refused a query."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    refused: list[str] = []
    for path in sorted(GENERATED.glob("*.json")):
        refused += _draw(path, options)
    for each in refused:
        print(f"refused: {each}", file=sys.stderr)
    return int(bool(refused))


def _draw(path: Path, options: argparse.Namespace) -> list[str]:
    """Draw one; gives what the Prometheus refused."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    variables = _of(path.stem.removeprefix("quotascope-"), options.set)
    prometheus = Prometheus(
        options.url, end=time.time(), minutes=options.minutes, variables=variables
    )
    drawn = options.folder / f"{path.stem}.html"
    drawn.write_text(page(dashboard, prometheus), encoding="utf-8")
    print(drawn)
    _picture(drawn, height_of(dashboard))
    return prometheus.refused


def _of(name: str, settings: list[str]) -> dict[str, str]:
    """The values of the variables of one dashboard."""
    own = (each.partition(":")[2] for each in settings if each.startswith(f"{name}:"))
    return dict(each.split("=", 1) for each in own)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Draw the dashboards.")
    parser.add_argument("url", help="of a Prometheus")
    parser.add_argument("folder", type=Path, help="for the pictures")
    parser.add_argument("--minutes", type=int, default=30, help="until now")
    parser.add_argument(
        "--set", action="append", default=[], metavar="DASHBOARD:VARIABLE=VALUE"
    )
    return parser.parse_args()


def _picture(drawn: Path, height: int) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no {BROWSERS[0]}: {drawn.name} has no PNG", file=sys.stderr)
        return
    png = drawn.with_suffix(".png")
    window = f"--window-size={WIDTH},{height}"
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", window]
    subprocess.run(
        [browser, *flags, f"--screenshot={png}", drawn.absolute().as_uri()],
        check=True,
        capture_output=True,
    )
    print(png)


if __name__ == "__main__":
    sys.exit(main())
