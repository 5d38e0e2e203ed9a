"""`quotascope whatif`: what quotas would have done, had they been set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import outputs
from .options import EngineName, Folder, IoThreads, KafkaVersion, TimeZone, check_extra, grouped, release_of, zone_of

EXAMPLES = """
Examples:

quotascope whatif usage --candidates candidates.yaml

quotascope whatif usage --candidates candidates.yaml --mode closed --html whatif.html --csv whatif.csv

quotascope whatif usage --candidates candidates.yaml --json | jq .candidates

quotascope whatif usage --candidates candidates.yaml --io-threads 8 --json | jq '.candidates[] | {name, wait_saved}'

spark-submit --master yarn "$(quotascope spark submit-script)" whatif hdfs:///kafka/usage --candidates candidates.yaml --html whatif.html
"""

Candidates = Annotated[
    Path, typer.Option(metavar="FILE", help="YAML file of the quotas to try; docs/whatif.md describes it.")
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
    decided: Annotated[
        bool,
        typer.Option(
            "--decided", help="Show what `shadow stream` has decided under these candidates, instead of a replay."
        ),
    ] = False,
    io_threads: IoThreads = None,
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    kafka_version: KafkaVersion = None,
    results: outputs.Results,
) -> None:
    """
    Replay usage history under quotas that are not set, through Kafka's own algorithms.

    Shows which clients would have been throttled, for how long, and under which candidate. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.releases import followed
    from quotascope.pipeline.replay import Mode
    from quotascope.pipeline.report.documents import whatif_csv, whatif_json
    from quotascope.pipeline.report.whatif import whatif_page
    from quotascope.pipeline.runs.engine import Engine
    from quotascope.pipeline.runs.shadow import decided_by
    from quotascope.pipeline.runs.whatif import what_if
    from quotascope.quotas.candidates import read_candidates

    from .terminal import bar

    if decided and mode != "open":
        raise typer.BadParameter("a stream decides in open loop", param_hint="--mode")
    outputs.check(*results.files)
    zone = zone_of(time_zone)
    kafka = followed(release_of(kafka_version))
    tried = read_candidates(candidates)
    modes = {"open": Mode.OPEN_LOOP, "closed": Mode.CLOSED_LOOP}
    known = decided_by(folder, tried) if decided else None
    with bar("replaying") as progress:
        found = what_if(
            folder,
            tried,
            modes[mode],
            engine=Engine(engine),
            zone=zone,
            progress=progress,
            kafka=kafka,
            decided=known,
            threads=io_threads,
        )
    if results.html is not None:
        outputs.put(results.html, whatif_page(found.summary, found.usages, zone))
    if results.csv is not None:
        outputs.put(results.csv, whatif_csv(found.results, found.summary.mode))
    for file in results.documents:
        outputs.put(file, whatif_json(found.summary))
    if not outputs.printed(*results.files):
        from rich.console import Console

        from .whatif_view import as_tables

        Console().print(as_tables(found.summary))
