"""Histories are replayed, beside Spark that only shuffles them and a notebook's way in one process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from benchmarks.pipeline import peers, places, work
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.options import BEFORE, ENTITIES, Checkout, Options
from benchmarks.pipeline.runs import Outcome, Side, run_in_turns
from benchmarks.pipeline.sides import ALONE, FRAME, MANY, NOTEBOOK, ON_SPARK, SHUFFLE, candidates
from benchmarks.pipeline.space import room_for
from benchmarks.pipeline.stored import paths

from quotascope.pipeline.history import History

ROW_BYTES: Final = 120
"""Bound of the bytes of a row on disk, before and while it is compacted."""
LITTLE: Final = 400_000
"""
Rows with which each process gets to know its work before it counts: enough for its workers to load what is compiled.
"""
MANY_GOAL: Final = 1.25
REPLAY_GOAL: Final = 1.3
"""CPU time, of what another checkout takes."""


def replay(options: Options) -> Iterator[Outcome]:
    """Yield what one candidate takes and what many take, on Spark and in one process."""
    room = options.rows * ROW_BYTES * len(options.checkouts)
    with room_for(room) as folder, ExitStack() as opened:
        on_spark: list[Side] = []
        in_one_process: list[Side] = []
        for number, checkout in enumerate(options.checkouts):
            little, tables = folder / f"little-{number}", folder / f"tables-{number}"
            places.store(little, LITTLE, Crowd(entities=100), checkout)
            places.store(tables, options.rows, Crowd(entities=ENTITIES[0]), checkout)
            spark = opened.enter_context(places.spark(folder / f"spark-{number}", checkout, options.memory))
            alone = opened.enter_context(places.alone(checkout))
            spark.call(work.replay_on_spark, str(little), MANY)
            alone.call(work.replay_alone, str(little), MANY)
            rows, history = options.rows, str(tables)
            on_spark += _replays(ON_SPARK, spark, work.replay_on_spark, history, rows, checkout)
            in_one_process += _replays(ALONE, alone, work.replay_alone, history, rows, checkout)
        table = History.open(str(folder / "tables-0")).detail
        if options.beside:
            for side in (*on_spark, *in_one_process):
                side.beside(f"{side.name}{BEFORE}", REPLAY_GOAL, by_cpu=True)
        else:
            notebook = opened.enter_context(places.alone(options.checkouts[0]))
            files, limits = paths(table), work.limits(1)
            on_spark.insert(0, spark.side(SHUFFLE, rows, peers.shuffle, files))
            in_one_process.insert(0, notebook.side(NOTEBOOK, rows, peers.throttled_seconds, files, limits))
            for base, one, many in (on_spark, in_one_process):
                one.beside(base.name)
                many.beside(one.name, MANY_GOAL)
            frame = spark.side(FRAME, rows, work.replay_frame_on_spark, files, 1)
            on_spark.append(frame.beside(on_spark[1].name))
        # Apart: Spark's workers end when others take a minute, and the next side would have to start them.
        run_in_turns("replay on Spark", on_spark, options.rounds)
        run_in_turns("replay alone", in_one_process, options.rounds)
        sides = on_spark + in_one_process
        facts = {"bytes_a_row": sum(file.size for file in table.files()) / rows}
    yield Outcome(title="replay", sides=sides, facts=facts)


def _replays(
    name: str, place: places.Place, job: Callable[..., object], history: str, rows: int, checkout: Checkout
) -> list[Side]:
    """Return the sides with one candidate, and with many."""
    return [place.side(checkout.named(candidates(name, number)), rows, job, history, number) for number in (1, MANY)]
