"""From the samples of a Prometheus to a table of them, and the past in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.pages.words import counted, moment

from ..engine import Engine
from ..errors import NoTable, PipelineError
from ..ingest.files import path_here, size_of
from ..runs.engine import MOST_LOCAL_BYTES, MOST_LOCAL_ROWS, EngineChoice, chosen, engine_for, engine_of
from ..table import File, Progress, Table, writing
from ..table.storage import DAY_MS
from .dumps import Dump, Listed, listed_in
from .dumps import series_of as series_of_dump
from .origins import contradiction
from .recorded import TableStore
from .remote_read import RawSeries
from .samples import (
    NAME,
    ORIGIN,
    ORIGIN_DAY,
    SAMPLES,
    Labels,
    origins_in,
    recorded_in,
    rows_of,
    samples_layout,
    series_id,
)
from .slices import DAY_S, HOUR_S, HOURS, MOST_SAMPLES, Reader, Slice, Wanted, slices_of

_LATE_S: Final = 120
"""Time in seconds before a whole hour up to which the last sample may be for the hour to count as whole."""
_TASKS: Final = 64
"""Number of tasks of one run of the engine, of a day or of several, so that Spark's workers have something to do."""
_CHUNK: Final = 4_000_000
"""Greatest number of rows that a task holds: servers and dumps have them by series, the table by shard and day."""
_CHUNK_BYTES: Final = 192 << 20
"""Greatest size of these rows."""
_MOST_PERIODS: Final = 3
"""Number of periods that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedSamples:
    """The result of an ingest."""

    samples: int
    """Number of samples that were added, without the ends of series."""
    hours: int
    """Number of hours that were read; 0 for dumps."""
    known_hours: int
    """Number of hours of the period that were in the table before."""
    known_dumps: Sequence[str] = ()
    """Paths of dumps that were in the table before."""


class NoSamplesTable(PipelineError):
    """A folder holds no table of samples."""


class ContradictingIngest(PipelineError):
    """The samples would not be told apart from those that are in the table."""


class NothingRead(PipelineError):
    """A server lists series, and has no sample of them."""


def ingest_remote(  # noqa: PLR0913 - the parts of an ingest
    into: str,
    origin: Mapping[str, str],
    settings: Mapping[str, str],
    wanted: Sequence[Wanted],
    period: tuple[float, float],
    read: Reader,
    *,
    engine: EngineChoice = EngineChoice.AUTO,
    progress: Progress = lambda _done, _all: None,
) -> IngestedSamples:
    """
    Read the samples of a server into a table. Hours that were read before are not read again.

    Each day is committed as a whole, so another run continues where one was interrupted.

    Args:
        into: folder or URI of the table, which is created if needed.
        origin: address and selector, which tell ingests apart.
        settings: what readers have to know, `instance_label` among it, the label that tells nodes apart.
        wanted: the series.
        period: begin and end, Unix times in seconds, whole hours.
        read: function that reads a slice.
        engine: the engine whose workers read and write.
        progress: called with the number of tasks that are done, and of all.

    Raises:
        ContradictingIngest: the table has samples of another cluster by its selector.
        NothingRead: no hour of the period has a sample; they count as not read.
        PipelineError: a slice cannot be read, or the table not written; days that were committed stay.

    """
    with_samples = [one for one in wanted if one.has_samples]
    context = [one.labels for one in wanted if not one.has_samples]
    table = Table.create(into, SAMPLES, samples_layout(len(with_samples)))
    if problem := contradiction([*origins_in(table), {**origin, **settings}]):
        raise ContradictingIngest(f"{into}: {problem}")
    entities = {series_id(one.labels): one for one in with_samples}
    batch = _batch_of(origin, settings, with_samples)
    days = list(_days(table, batch, *period))
    # each day with hours that are not in the table yet, and the tasks that read these hours
    planned = [
        (day, _tasks([*slices_of(with_samples, settings["instance_label"], day.number, day.new, day.known)]))
        for day in days
        if day.new
    ]
    count = sum(len(tasks) for _, tasks in planned)
    # an estimate, by which the engine is chosen: half of the largest number for each slice
    samples = MOST_SAMPLES // 2 * sum(len(slices) for _, tasks in planned for slices in tasks)
    workers = engine_of(chosen(engine, samples, MOST_LOCAL_ROWS), "reading of samples")
    work = partial(_recorded, table, read, entities)
    added = done = empty = 0
    with writing([table.storage]):
        for run in _runs(planned):
            tasks = [(day, slices) for day, tasks_of_day in run for slices in tasks_of_day]
            files_by_day: dict[_Day, list[File]] = defaultdict(list)
            samples_by_day: dict[_Day, int] = defaultdict(int)
            staged: list[File] = []
            with table.discarded_unless_committed(staged):
                report = partial(_report, progress, done, count)
                answers = workers.map(work, [slices for _, slices in tasks], report)
                for (day, _), (files, number) in zip(tasks, answers, strict=True):
                    samples_by_day[day] += number
                    files_by_day[day] += files
                    staged += files
            done += len(tasks)
            for day, _ in run:
                if not samples_by_day[day]:  # the server may have them later
                    empty += day.new.bit_count()
                    for file in files_by_day[day]:
                        table.storage.remove(file.path)
                    continue
                hours = [hour for hour in range(HOURS) if day.new >> hour & 1]
                begin_s = day.number * DAY_S
                span = begin_s + hours[0] * HOUR_S, begin_s + (hours[-1] + 1) * HOUR_S
                about = _about({**origin, **settings}, span, context)
                # the epoch of a day is its known hours as bits, a number that grows with each further hour
                table.advance(
                    f"{batch}, day {day.number}",
                    _merged(table, workers, files_by_day[day], about),
                    after_epoch=day.known or None,
                    epoch=day.known | day.asked,
                )
                added += samples_by_day[day]
    new = sum(day.new.bit_count() for day in days)
    known_before = any(day.known & day.asked for day in days)
    if new and not added and not known_before:
        raise NothingRead(
            f"{origin['address']} lists {len(with_samples):,} series, and remote read answers no sample of them in the "
            f"{new:,} hours of the period: does this address have remote read of the same samples?"
        )
    _tidied(table, workers)
    asked = sum(day.asked.bit_count() for day in days)
    return IngestedSamples(samples=added, hours=new - empty, known_hours=asked - new)


def _report(progress: Progress, done_before: int, count: int, done: int, _: int) -> None:
    """Report the tasks of one run as some of those of all runs."""
    progress(min(count, done_before + done), count)


class _Day(NamedTuple):
    """A day, whose hours are bits."""

    number: int
    """Days since 1970."""
    known: int
    """Hours that are in the table."""
    asked: int
    """Hours of the period."""

    @property
    def new(self) -> int:
        """Hours of the period that are not in the table."""
        return self.asked & ~self.known


def _days(table: Table, batch: str, begin: float, end: float) -> Iterator[_Day]:
    """Yield each day of a period."""
    for number in range(int(begin // DAY_S), int(-(-end // DAY_S))):
        starts = (number * DAY_S + hour * HOUR_S for hour in range(HOURS))
        asked = sum(1 << hour for hour, start in enumerate(starts) if begin <= start < end)
        yield _Day(number, table.last_epoch(f"{batch}, day {number}") or 0, asked)


def _batch_of(origin: Mapping[str, str], settings: Mapping[str, str], wanted: Iterable[Wanted]) -> str:
    """
    Return the name under which the table keeps the hours that are known of an ingest.

    It stands for origin, metrics, and labels of nodes. It does not stand for the series: clients come and go, and the
    hours before need not be read again for them.
    """
    metrics = ",".join(sorted({one.labels[NAME] for one in wanted}))
    known_by = {**origin, **{name: value for name, value in settings.items() if name != "nodes"}, "metrics": metrics}
    return f"samples of {series_id(known_by):x}"


def _tasks(slices: Sequence[Slice]) -> list[Sequence[Slice]]:
    """
    Return the slices of a day as at most `_TASKS` tasks.

    A slice is of a few nodes, whose entities are of all shards: a task for each slice would write many small files.
    """
    length = max(1, -(-len(slices) // _TASKS))
    return [slices[first : first + length] for first in range(0, len(slices), length)]


_PlannedDay: TypeAlias = tuple[_Day, Sequence[Sequence[Slice]]]
"""A day and its tasks."""


def _runs(planned: Sequence[_PlannedDay]) -> Iterator[list[_PlannedDay]]:
    """Yield days whose tasks are done together."""
    run: list[_PlannedDay] = []
    for planned_day in planned:
        run.append(planned_day)
        if sum(len(tasks) for _, tasks in run) >= _TASKS:
            yield run
            run = []
    if run:
        yield run


def _recorded(
    table: Table, read: Reader, wanted: Mapping[int, Wanted], slices: Sequence[Slice]
) -> tuple[list[File], int]:
    """Read slices and stage their rows; return files and number of samples. Series that are not wanted are left out."""
    count = 0

    def batches() -> Iterator[pa.RecordBatch]:
        """Yield the rows of all slices, and count their samples."""
        nonlocal count
        for one in slices:
            for rows in _rows_of(wanted, read(one)):
                count += _samples_in(rows, one.first_ms)
                yield from rows.to_batches()

    return table.stage(batches(), _CHUNK, _CHUNK_BYTES), count


def _merged(table: Table, engine: Engine, files: Sequence[File], about: pa.Table) -> list[File]:
    """
    Merge staged files, and stage the rows about them; return the files to commit.

    Files that this writes are removed on an error.
    """
    merged: list[File] = []
    with table.discarded_unless_committed(merged):
        merged += table.merged(files, engine.map)
        merged += table.stage(about)
    return merged


def _samples_in(rows: pa.Table, after_ms: int | None = None) -> int:
    """Return the number of rows after a time that are samples, and not ends of series."""
    if after_ms is not None:
        rows = rows.filter(pc.greater(rows["timestamp"], pa.scalar(after_ms, pa.int64())))
    return len(rows) - rows["value"].null_count


def _rows_of(wanted: Mapping[int, Wanted], series: Iterable[RawSeries]) -> Iterator[pa.Table]:
    """Yield the rows of series that are wanted."""
    names_of: dict[str, set[str]] = defaultdict(set)
    for one in wanted.values():
        names_of[one.labels[NAME]].update(one.labels)
    for raw in series:
        known = wanted.get(series_id(raw.labels))
        if known is None:  # a server adds its external labels, which series of another metric may have for themselves
            names = names_of[raw.labels.get(NAME, "")]
            known = wanted.get(series_id({name: value for name, value in raw.labels.items() if name in names}))
        if known is not None:
            yield rows_of([(known.labels, known.entity, raw.times_ms, raw.values, raw.ended)])


def _about(origin: Mapping[str, str], span: tuple[int, ...], context: Iterable[Labels]) -> pa.Table:
    """
    Return the row that says where samples are from and of which hours (`ORIGIN`), and rows for series without samples.

    Args:
        origin: address, selector and settings of the ingest.
        span: begin and end of the hours, Unix times in seconds.
        context: labels of the series without samples.

    """
    begin, end = span
    from_where = {NAME: ORIGIN, **origin, "begin": str(begin), "end": str(end)}
    values, ended = np.zeros(1), [True]
    return rows_of(
        [
            (from_where, "", np.array([ORIGIN_DAY * DAY_MS]), values, ended),
            *((one, "", np.array([begin * 1_000]), values, ended) for one in context),
        ]
    )


def _span_of(files: Sequence[File]) -> tuple[int, int]:
    """Return the whole hours that files have samples of; a last scrape may be some time before the end of its hour."""
    first_ms = min(file.day * DAY_MS if file.first_ms is None else file.first_ms for file in files)
    last_ms = max((file.day + 1) * DAY_MS if file.last_ms is None else file.last_ms for file in files)
    return first_ms // 1_000 // HOUR_S * HOUR_S, (last_ms // 1_000 + _LATE_S) // HOUR_S * HOUR_S


def listed(
    dumps: Sequence[str], engine: EngineChoice = EngineChoice.AUTO, progress: Progress | None = None
) -> list[Listed]:
    """Return the lists of the series in dumps; each dump is one task. Raises `UnreadableLog`."""
    paths = [path_here(path) for path in dumps]
    workers = engine_of(chosen(engine, sum(map(size_of, paths)), MOST_LOCAL_BYTES), "listing of dumps")
    return list(workers.map(listed_in, [Dump(path) for path in paths], progress))


def ingest_dumps(
    into: str,
    settings: Mapping[str, str],
    dumps: Sequence[Listed],
    wanted: Sequence[Wanted],
    *,
    engine: EngineChoice = EngineChoice.AUTO,
    progress: Progress = lambda _done, _all: None,
) -> IngestedSamples:
    """
    Read dumps of blocks into a table; one whose content was read before is not read again.

    Args:
        into: folder or URI of the table, which is created if needed.
        settings: what readers have to know, as of `ingest_remote`.
        dumps: the dumps, and what is in them.
        wanted: the series.
        engine: the engine whose workers read and write; each dump is one task.
        progress: called with the number of dumps that are done, and of all.

    Raises:
        PipelineError: a dump cannot be read, or the table not written; dumps that were committed stay.

    """
    with_samples = [one for one in wanted if one.has_samples]
    context = [one.labels for one in wanted if not one.has_samples]
    table = Table.create(into, SAMPLES, samples_layout(len(with_samples)))
    entities = {series_id(one.labels): one for one in with_samples}
    new = [one for one in {one.digest: one for one in dumps}.values() if not table.holds(_dump_id(one))]
    size = sum(size_of(one.dump.path) for one in new)
    workers = engine_of(chosen(engine, size, MOST_LOCAL_BYTES), "reading of dumps")
    work = partial(_dumped, table, entities)
    added = 0
    with writing([table.storage]):
        for one, (files, number) in zip(new, workers.map(work, [one.dump for one in new], progress), strict=True):
            with table.discarded_unless_committed(files):
                merged = _merged(table, workers, files, _about(settings, _span_of(files), context)) if files else []
            table.advance(_dump_id(one), merged, after_epoch=None, epoch=0)
            added += number
    _tidied(table, workers)
    known = [one.dump.path for one in dumps if one not in new]
    return IngestedSamples(samples=added, hours=0, known_hours=0, known_dumps=known)


def _dump_id(one: Listed) -> str:
    """Return the batch id under which the table remembers a dump, by its content."""
    return f"dump {one.digest}"


def _dumped(table: Table, wanted: Mapping[int, Wanted], dump: Dump) -> tuple[list[File], int]:
    """Read a dump and stage its rows; return files and number of samples. Series that are not wanted are left out."""
    count = 0

    def batches() -> Iterator[pa.RecordBatch]:
        """Yield the rows of the dump, and count their samples."""
        nonlocal count
        for rows in _rows_of(wanted, series_of_dump(dump)):
            count += _samples_in(rows)
            yield from rows.to_batches()

    return table.stage(batches(), _CHUNK, _CHUNK_BYTES), count


def _tidied(table: Table, engine: Engine) -> None:
    """Merge the files of each shard and day, and delete those that were merged a day ago."""
    table.compact(map_items=engine.map)
    table.clean()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPast:
    """The past in a table of samples."""

    store: TableStore
    begin: float
    """Unix time in seconds: the first hour that is asked for and in the table."""
    end: float
    origins: Sequence[Labels]
    """Addresses and selectors of what is in the table."""
    series: Sequence[Labels]
    """Labels of all its series in the period."""


def recorded_past(
    folder: str, span: tuple[float | None, float | None], days: float | None, engine: EngineChoice = EngineChoice.AUTO
) -> RecordedPast:
    """
    Open a table of samples, of which whole hours are read.

    Args:
        folder: folder or URI of the table.
        span: begin and end, Unix times in seconds; those of the table for None.
        days: length of the period up to its end, if no begin is given; None for all of the table.
        engine: the engine that reads it.

    Raises:
        NoSamplesTable: there is none, or it has no samples in the period.
        ContradictingIngest: it has the samples of two clusters.

    """
    try:
        table = Table.open(folder)
    except NoTable:
        raise NoSamplesTable(f"{folder}: no table of samples; `quotascope ingest-prometheus` makes one") from None
    if table.schema.names != SAMPLES.names:
        raise NoSamplesTable(f"{folder}: a table, but none of samples, as `quotascope ingest-prometheus` makes them")
    workers = engine_for(engine, table, "samples")
    origins = origins_in(table)
    if not origins:
        raise NoSamplesTable(f"{folder}: the table of samples is empty")
    if problem := contradiction(origins):
        raise ContradictingIngest(f"{folder}: {problem}")
    begin, end = _hours_of(origins, span, days)
    if begin >= end:
        raise NoSamplesTable(
            f"{folder}: has no full hour of samples in this period: {_hours_text(origins)} are in it (--begin, --end, "
            "--days)"
        )
    recorded = recorded_in(table, workers, begin, end)
    series = {number: one for number, one in recorded.items() if one.labels[NAME] != ORIGIN}
    return RecordedPast(
        store=TableStore(table=table, engine=workers, series=series, hours=_hours_text(origins)),
        begin=begin,
        end=end,
        origins=origins,
        series=[one.labels for one in series.values()],
    )


def _hours_text(origins: Sequence[Labels]) -> str:
    """Return the hours that a table has as text: each period without a gap, the last ones if there are many."""
    periods: list[tuple[float, float]] = []
    for begin, end in sorted((float(one["begin"]), float(one["end"])) for one in origins):
        if periods and begin <= periods[-1][1]:
            periods[-1] = periods[-1][0], max(periods[-1][1], end)
        else:
            periods.append((begin, end))
    texts = [f"{moment(1_000 * begin)} to {moment(1_000 * end)}" for begin, end in periods[-_MOST_PERIODS:]]
    earlier = f"{counted(len(periods) - len(texts), 'earlier period')}, " if len(periods) > len(texts) else ""
    return earlier + ", ".join(texts)


def _hours_of(
    origins: Sequence[Labels], span: tuple[float | None, float | None], days: float | None
) -> tuple[float, float]:
    """Return begin and end of the whole hours of a period that are in a table."""
    begin, end = min(float(one["begin"]) for one in origins), max(float(one["end"]) for one in origins)
    if span[1] is not None:
        end = min(end, span[1] // HOUR_S * HOUR_S)
    if span[0] is not None:
        begin = max(begin, span[0] // HOUR_S * HOUR_S)
    elif days is not None:
        begin = max(begin, end - max(1, round(days * 24)) * HOUR_S)
    return begin, end
