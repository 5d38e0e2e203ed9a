"""`quotascope whatif`: effects of quotas on past usage."""

from __future__ import annotations

from functools import partial
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

quotascope whatif usage --candidates candidates.yaml --wait-saved --io-threads 8 --json | jq '.candidates[] | {name, \
wait_saved}'

spark-submit --master yarn "$(quotascope spark submit-script)" whatif hdfs:///kafka/usage --candidates \
candidates.yaml --html whatif.html
"""

Candidates = Annotated[
    Path, typer.Option(metavar="FILE", help="YAML file of the quotas to try (documentation: What if?).")
]
ModeName = Annotated[
    Literal["open", "closed"],
    typer.Option(
        "--mode",
        help=(
            "open: requests arrive as logged, which overstates throttling under a lower limit, and understates it "
            "under a higher one for clients that were throttled while logged (≥). closed: a throttled connection sends "
            "its next request later."
        ),
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
    wait_saved: Annotated[
        bool,
        typer.Option(
            "--wait-saved",
            help=(
                "Also show how much shorter other clients would wait in the brokers' request queues: clients that the "
                "candidate does not throttle. Takes longer than the replay."
            ),
        ),
    ] = False,
    io_threads: IoThreads = None,
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    kafka_version: KafkaVersion = None,
    results: outputs.Results,
) -> None:
    """
    Replay usage history under quotas that are not set, with Kafka's own algorithms.

    Shows which clients would have been throttled, for how long, and under which candidate. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.releases import followed
    from quotascope.pipeline.replay import Mode
    from quotascope.pipeline.runs import whatif as question
    from quotascope.pipeline.runs.engine import EngineChoice
    from quotascope.quotas.candidates import read_candidates

    if decided:
        _refuse_with_decided(mode, engine, kafka_version, wait_saved=wait_saved)
    if io_threads is not None and not wait_saved:
        raise typer.BadParameter("threads matter to --wait-saved only", param_hint="--io-threads")
    outputs.check(*results.files)
    zone = zone_of(time_zone)
    kafka = followed(release_of(kafka_version))
    candidate_rules = read_candidates(candidates)
    modes = {"open": Mode.OPEN_LOOP, "closed": Mode.CLOSED_LOOP}
    if decided:
        answer = question.what_was_decided(folder, candidate_rules, zone=zone)
    else:
        with outputs.bar("replaying") as progress:
            answer = question.what_if(
                folder,
                candidate_rules,
                modes[mode],
                engine=EngineChoice(engine),
                zone=zone,
                progress=progress,
                kafka=kafka,
                wait_saved=wait_saved,
                threads=io_threads,
            )
    outputs.write(
        results,
        report=partial(question.report, answer, zone),
        document=partial(question.document, answer),
        csv=partial(question.as_csv, answer),
    )


def _refuse_with_decided(mode: str, engine: str, kafka_version: str | None, *, wait_saved: bool) -> None:
    """Raise BadParameter for an option that would change the answer of a stream."""
    for name, is_used, reason in (
        ("--mode", mode != "open", "a stream decides in open loop"),
        ("--engine", engine != "auto", "nothing is replayed with --decided"),
        ("--kafka-version", kafka_version is not None, "a stream has followed the releases that the log named"),
        ("--wait-saved", wait_saved, "a stream knows nothing of waits"),
    ):
        if is_used:
            raise typer.BadParameter(reason, param_hint=name)
