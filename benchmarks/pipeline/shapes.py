"""Replay's time and memory by the number of rows, by the number of entities, and by the size of the largest one."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from benchmarks.pipeline import places, work
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.options import BEFORE, ENTITIES, GIANTS, Options
from benchmarks.pipeline.replay import LITTLE, REPLAY_GOAL, ROW_BYTES
from benchmarks.pipeline.runs import Outcome, Side, run_in_turns
from benchmarks.pipeline.sides import MANY
from benchmarks.pipeline.space import room_for


def growth(options: Options) -> Iterator[Outcome]:
    """Yield replays of ever more rows."""
    crowd = Crowd(entities=ENTITIES[0])
    yield _compared("growth", {f"{rows:,} rows": (rows, crowd) for rows in options.sizes}, options)


def entities(options: Options) -> Iterator[Outcome]:
    """Yield replays of as many rows of ever more entities."""
    crowds = {f"{entities:,} entities": (options.rows, Crowd(entities=entities)) for entities in ENTITIES}
    yield _compared("entities", crowds, options)


def skew(options: Options) -> Iterator[Outcome]:
    """Yield replays of as many rows, of which the largest entity has ever more."""
    crowds = {
        f"{share:.0%} of one entity" if share else "by Zipf's law": (
            options.rows,
            Crowd(entities=ENTITIES[0], giant=share),
        )
        for share in GIANTS
    }
    yield _compared("skew", crowds, options)


def _compared(title: str, crowds: Mapping[str, tuple[int, Crowd]], options: Options) -> Outcome:
    base = next(iter(crowds))
    sides: list[Side] = []
    facts = {}
    for name, (rows, crowd) in crowds.items():
        side, *side_before = _replayed(title, name, rows, crowd, options)
        if side_before:
            side.beside(f"{name}{BEFORE}", REPLAY_GOAL, by_cpu=True)
        else:
            side.beside(base if name != base else "")
        sides += [side, *side_before]
        facts[f"largest entity, {name}"] = float(crowd.counts(rows).max())
    return Outcome(title=title, sides=sides, facts=facts)


def _replayed(title: str, name: str, rows: int, crowd: Crowd, options: Options) -> list[Side]:
    """Replay in a driver of its own, one for each checkout: what another history left in memory does not count."""
    room = rows * ROW_BYTES * len(options.checkouts)
    sides = []
    with room_for(room) as folder, ExitStack() as opened:
        for number, checkout in enumerate(options.checkouts):
            little, whole = folder / f"little-{number}", folder / f"tables-{number}"
            places.store(little, LITTLE, Crowd(entities=100), checkout)
            places.store(whole, rows, crowd, checkout)
            place = opened.enter_context(places.spark(folder / f"spark-{number}", checkout, options.memory))
            place.call(work.replay_on_spark, str(little), MANY)
            named = checkout.named(name)
            sides.append(place.side(named, rows, work.replay_on_spark, str(whole), 1))
        run_in_turns(f"{title}: {name}", sides, options.rounds)
    return sides
