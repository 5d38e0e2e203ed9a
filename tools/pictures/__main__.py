"""
Pictures of the dashboards for the documentation, drawn by Grafana's own components: ``make pictures``.

Overview and entity show a quarter of an hour of the demo, on a clock of its own. The dashboard of Spark jobs shows a
real job that a real broker throttles, for eight minutes; ``ARGS='demo'`` leaves it out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.cluster.cluster import Layout, running
from tests.dashboards.drawn import View, drawing
from tests.dashboards.provision import page
from tests.dashboards.stored import DEMO_SCRAPE_SECONDS, DEMO_SECONDS, DEMO_START, demo, started
from tests.integration.exporter import serving, settings_for
from tests.integration.spark.night import APP, night
from tools.demo_stack import fill

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures"
ENTITY: Final = {"user": "etl", "client_id": "spark-nightly"}
_JOB_SECONDS: Final = 8 * 60


@contextmanager
def _of_demo(folder: Path) -> Iterator[dict[str, View]]:
    fill(folder, demo(DEMO_SECONDS))
    with started(folder) as prometheus:
        view = View(
            prometheus=f"http://{prometheus.address}",
            start=DEMO_START,
            # the label of the last minute would be cut at the edge of a graph
            end=DEMO_START + DEMO_SECONDS - 2 * DEMO_SCRAPE_SECONDS,
            scrape_seconds=DEMO_SCRAPE_SECONDS,
            variables=ENTITY,
        )
        yield {"overview": view, "entity": view}


@contextmanager
def _of_job(folder: Path) -> Iterator[dict[str, View]]:
    with ExitStack() as stack:
        kafka = stack.enter_context(running(Layout.COMBINED, folder / "kafka"))
        settings = settings_for(kafka.brokers, kafka.admin)
        exporter = stack.enter_context(serving(folder / "serve", settings))
        job = stack.enter_context(night(kafka, exporter, folder / "night"))
        time.sleep(_JOB_SECONDS)
        now = time.time()
        view = View(
            prometheus=f"http://{job.prometheus.address}",
            start=now - _JOB_SECONDS,
            end=now,
            scrape_seconds=1,
            variables={"app": APP},
        )
        yield {"spark": view}


SOURCES: Final = {"demo": _of_demo, "job": _of_job}


def main() -> int:
    """Draw all pictures, or those of one source; return 1 when there was an error."""
    parser = argparse.ArgumentParser(description="Draw the dashboards.")
    parser.add_argument("sources", nargs="*", choices=SOURCES, default=[*SOURCES])
    boards = grafana_dashboards(Scope())
    complaints = []
    for source in parser.parse_args().sources:
        with TemporaryDirectory() as name, ExitStack() as stack:
            drawer = stack.enter_context(drawing(page(), Path(name)))
            views = stack.enter_context(SOURCES[source](Path(name)))
            for board, view in views.items():
                uid = f"quotascope-{board}"
                drawn = drawer.draw(boards[uid], view, expanded=False)
                complaints += drawn.complaints
                path = PICTURES / f"dashboard-{board}.png"
                drawn.picture.quantize(256).save(path, optimize=True)
                print(path)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
