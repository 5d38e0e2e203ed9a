"""`quotascope demo`: the whole product in one process, without Kafka."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options

EXAMPLES = """
Examples:

  quotascope demo

  quotascope demo --port 9749 --duration 60
"""


def demo(
    port: Annotated[int, options.PORT] = 0,
    duration: Annotated[
        int | None, typer.Option(metavar="SECONDS", min=0, help="End after this time; else with Ctrl-C.")
    ] = None,
) -> None:
    """
    Watch made-up clients hit real quotas: needs no Kafka.

    A quota engine, its clients and the exporter run in this process.
    The terminal shows who is throttled and by which rule; a browser and
    Prometheus find the same under the URL that is printed. Without a terminal
    the table is printed every few seconds.

    Its half hour repeats: from minute 2 on a sale throttles eight more users,
    from minute 9 to 17 tests do.
    """
    import asyncio

    from quotascope.exporter.config import Config
    from quotascope.exporter.logs import configure_logs

    from .play import play

    config = Config.model_validate(
        {
            "server": {"address": "127.0.0.1", "port": port},
            "collection": {"max_age_seconds": 0.2, "sample_every_seconds": 1},
            "log": {"level": "warning"},
        }
    )
    configure_logs(config.log)
    asyncio.run(play(config, duration))
