"""`quotascope whatif`: what quotas would have done, had they been set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import outputs
from .grouping import grouped
from .pipeline_options import (
    EngineName,
    Folder,
    KafkaVersion,
    TimeZone,
    check_extra,
    release_of,
    zone_of,
)

if TYPE_CHECKING:
    from datetime import tzinfo

    from quotascope.pipeline.runs.whatif import WhatIf

EXAMPLES = """
Examples:

quotascope whatif usage --candidates candidates.yaml

quotascope whatif usage --candidates candidates.yaml --mode closed --html whatif.html --csv whatif.csv

quotascope whatif usage --candidates candidates.yaml --json | jq .candidates

spark-submit --master yarn "$(quotascope spark submit-script)" whatif hdfs:///kafka/usage --candidates candidates.yaml --html whatif.html
"""

Candidates = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="YAML file of the quotas to try; docs/whatif.md describes it.",
    ),
]
ModeName = Annotated[
    Literal["open", "closed"],
    typer.Option(
        "--mode",
        help="open: requests arrive as logged, figures are upper bounds. closed: a throttled connection's next request comes later.",
    ),
]


@grouped
def whatif(
    folder: Folder,
    *,
    candidates: Candidates,
    mode: ModeName = "open",
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    kafka_version: KafkaVersion = None,
    results: outputs.Results,
) -> None:
    """
    Replay usage history under quotas that nobody has set, through Kafka's own algorithms.

    Shows who would have been throttled, for how long, and under which candidate. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.candidates import read_candidates
    from quotascope.pipeline.followed import followed
    from quotascope.pipeline.runs.engine import Engine
    from quotascope.pipeline.runs.whatif import what_if
    from quotascope.pipeline.whatif.mode import Mode

    from .progress import bar

    outputs.check(*results.files)
    zone = zone_of(time_zone)
    kafka = followed(release_of(kafka_version))
    tried = read_candidates(candidates)
    modes = {"open": Mode.OPEN_LOOP, "closed": Mode.CLOSED_LOOP}
    with bar("replaying") as progress:
        found = what_if(folder, tried, modes[mode], engine=Engine(engine), zone=zone, progress=progress, kafka=kafka)  # fmt: skip
    _write(results, found, zone)
    if not outputs.printed(*results.files):
        from rich.console import Console

        from .whatif_view import as_tables

        Console().print(as_tables(found.account))


def _write(results: outputs.Results, found: WhatIf, zone: tzinfo) -> None:
    from quotascope.pipeline.report.documents import as_csv, as_json
    from quotascope.pipeline.report.whatif_page import whatif_page

    if results.html is not None:
        outputs.put(results.html, whatif_page(found.account, found.usages, zone))
    if results.csv is not None:
        outputs.put(results.csv, as_csv(found.results, found.account.mode))
    for file in results.documents:
        outputs.put(file, as_json(found.account))
