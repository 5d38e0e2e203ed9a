"""Histories are replayed, beside Spark that only shuffles them and a notebook's way in one process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.pipeline import peers, places, work
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.options import ENTITIES, Options
from benchmarks.pipeline.outcome import Outcome
from benchmarks.pipeline.runs import Side, in_turns
from benchmarks.pipeline.sides import (
    ALONE,
    MANY,
    NOTEBOOK,
    ON_SPARK,
    SHUFFLE,
    candidates,
)
from benchmarks.pipeline.space import room_for
from benchmarks.pipeline.stored import paths, stored

ROW_BYTES: Final = 120
"""Of a row on disk, before and while it is compacted, at most."""
MANY_GOAL: Final = 1.25


def replay(options: Options) -> Iterator[Outcome]:
    """Yield what one candidate takes and what many take, on Spark and in one process."""
    with room_for(options.rows * ROW_BYTES) as folder, ExitStack() as open_places:
        table = stored(folder / "tables", options.rows, Crowd(entities=ENTITIES[0]))
        spark = open_places.enter_context(
            places.spark(folder / "spark", options.memory)
        )
        alone, notebook = (open_places.enter_context(places.alone()) for _ in range(2))
        rows, files = options.rows, paths(table)
        on_spark = [
            spark.side(SHUFFLE, rows, peers.shuffle, files),
            *_replays(ON_SPARK, spark, work.replay_on_spark, folder, rows, SHUFFLE),
        ]
        in_one_process = [
            notebook.side(
                NOTEBOOK, rows, peers.throttled_seconds, files, work.limits(1)
            ),
            *_replays(ALONE, alone, work.replay_alone, folder, rows, NOTEBOOK),
        ]
        # Apart: Spark's workers end when others take a minute, and whoever comes next would have to start them.
        in_turns("replay on Spark", on_spark, options.rounds, warm_up=1)
        in_turns("replay alone", in_one_process, options.rounds, warm_up=1)
        sides = on_spark + in_one_process
        facts = {"bytes_a_row": sum(file.size for file in table.files()) / rows}
    yield Outcome(title="replay", sides=sides, facts=facts)


def _replays(
    name: str,
    place: places.Place,
    job: Callable[..., object],
    folder: Path,
    rows: int,
    base: str,
) -> list[Side]:
    """One candidate beside the peer, and many beside one."""
    history = str(folder / "tables")
    one, many = candidates(name, 1), candidates(name, MANY)
    return [
        place.side(one, rows, job, history, 1).beside(base),
        place.side(many, rows, job, history, MANY).beside(one, MANY_GOAL),
    ]
