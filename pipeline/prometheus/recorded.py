"""The past of a cluster in a table of raw samples, which answers the same questions as a Prometheus server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from ..engine import Engine
from ..table import File, Progress, Table
from .figures import LOOKBACK_MS, Times, Track, Value, Window, answer, scrapes_by_hour
from .intervals import WINDOW_S, Hour
from .nodes import QUARTER_S, SHORTEST_S, Beats, Scraped, gaps_between, nodes_by_hours, scraped_by, whole_hour
from .past import Answer, Group, Key, Node, NoSamples, Question, Store, Target, key_of
from .promql import Samples
from .samples import NAME, Labels, Recorded, all_files, shards_by, tracks_in

_DAY_S: Final = 86_400
_MOST_ROWS: Final = 8_000_000
"""Largest number of samples that a task holds in memory, in 17 bytes each, and about 170 while it sorts them."""

_NumberedAnswer: TypeAlias = tuple[int, int, Sequence[Value]]
"""Number of the question, index of the target within the question's group, and the answer."""
_Figure: TypeAlias = Callable[[Track, float, float], Any]
"""Function of a track, and of begin and end of a period; None for a track without a figure."""


class NamedBeats(Beats, Protocol):
    """Series whose samples are the scrapes of the nodes, with the names of their metrics."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the metrics."""
        ...


@dataclass(frozen=True, slots=True)
class _TargetSeries:
    """The series of one target."""

    group: int
    """Number of the target's group."""
    target: int
    """Index of the target within the group."""
    numbers: tuple[int, ...]
    """`series_id` of each series."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Targets, and the questions about their groups in a part of the period."""

    files: Sequence[File]
    """Files that have the series of the targets."""
    series: Sequence[_TargetSeries]
    questions: Mapping[int, Sequence[tuple[int, Question]]]
    """Questions with their numbers, by the number of the group; their groups have no targets."""
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStore(Store):
    """The samples in a table."""

    table: Table = field(repr=False)
    engine: Engine = field(repr=False)
    series: Mapping[int, Recorded] = field(repr=False)
    """Series of the period by `series_id`."""
    hours: str
    """The hours that the table has, for messages."""

    def answers(
        self, questions: Sequence[Question], step_s: float, progress: Progress | None = None
    ) -> Iterator[tuple[str, Target, Answer]]:
        """Yield the answers, which tasks compute that read some shards for some days."""
        # groups are told apart by `id`, as they cannot be hashed; workers get their numbers
        groups = {id(question.group): question.group for question in questions}
        group_numbers = {group_id: number for number, group_id in enumerate(groups)}
        targets = [self._targets(number, group) for number, group in enumerate(groups.values())]
        numbered = [(group_numbers[id(question.group)], number, question) for number, question in enumerate(questions)]
        tasks = self._tasks(numbered, [series for _, group_series in targets for series in group_series], step_s)
        for answers in self.engine.map(partial(_answered, self.table), tasks, progress):
            for number, target, values in answers:
                question = questions[number]
                targets_of_group, _ = targets[group_numbers[id(question.group)]]
                yield question.name, targets_of_group[target], Answer({}, values)

    def _targets(self, group_number: int, group: Group) -> tuple[list[Target], list[_TargetSeries]]:
        """Return the targets of a group that have series in the table, and the series of each."""
        numbers: dict[Key, list[int]] = defaultdict(list)
        for number, recorded in self.series.items():
            labels = recorded.labels
            if labels[NAME] == group.samples.name:
                by = group.samples.by
                key = key_of({label: labels.get(label, "") for label in by} if by else labels)
                if key in group.targets:
                    numbers[key].append(number)
        series = [
            _TargetSeries(group_number, target, tuple(series_numbers))
            for target, series_numbers in enumerate(numbers.values())
        ]
        return [group.targets[key] for key in numbers], series

    def _tasks(
        self, questions: Sequence[tuple[int, int, Question]], series: Sequence[_TargetSeries], step_s: float
    ) -> list[_Task]:
        """Return the tasks that answer questions, which have the number of their group and their own."""
        by_shard: dict[int | None, list[_TargetSeries]] = defaultdict(list)
        for target_series in series:
            # a sum over entities of several shards reads all shards
            shards = {self.series[number].shard for number in target_series.numbers}
            by_shard[shards.pop() if len(shards) == 1 else None].append(target_series)
        # parts of so many days that the samples of a shard fit in a task; a question is in the part of its end
        largest_shard = max((len(in_shard) for in_shard in by_shard.values()), default=1)
        days = max(1, int(_MOST_ROWS * step_s / _DAY_S) // max(1, largest_shard))
        parts: dict[int, list[tuple[int, int, Question]]] = defaultdict(list)
        for group, number, question in questions:
            parts[int((question.end - 1) // (days * _DAY_S))].append((group, number, question))
        files_by_shard = shards_by(self.table, self.table.files())
        tasks = []
        for _, part in sorted(parts.items()):
            begin = min(question.begin for _, _, question in part)
            end = max(question.end for _, _, question in part)
            by_group: dict[int, list[tuple[int, Question]]] = defaultdict(list)
            for group, number, question in part:
                by_group[group].append((number, _without_targets(question)))
            first_ms, last_ms = round(begin * 1_000) - LOOKBACK_MS, round(end * 1_000) + 1
            for shard, in_shard in by_shard.items():
                files = all_files(files_by_shard) if shard is None else files_by_shard[shard]
                files_of_part = [file for file in files if file.overlaps(first_ms, last_ms)]
                asked = [target_series for target_series in in_shard if target_series.group in by_group]
                for task_series in _divided(asked, (end - begin) / step_s):
                    tasks.append(_Task(files_of_part, task_series, by_group, step_s))  # noqa: PERF401 - two loops deep
        return tasks

    def latest(self, names: Collection[str], at: float) -> list[tuple[Labels, float]]:
        """Return the labels and the value, at a Unix time, of all series of some metrics that have one."""
        by_shard: dict[int, list[int]] = defaultdict(list)
        for number, recorded in self.series.items():
            if recorded.labels[NAME] in names:
                by_shard[recorded.shard].append(number)
        files = shards_by(self.table, self.table.files())
        latest: list[tuple[int, float]] = []
        for shard, numbers in by_shard.items():  # in this process, as it reads only a few minutes of samples
            latest += _latest_in(self.table, files[shard], numbers, at)
        return [(self.series[number].labels, value) for number, value in latest]

    def begin_of(self, beat: NamedBeats, begin: float, end: float) -> float:
        """Return the begin of the first hour of a period that is seen whole. Raises `NoSamples` if there is none."""
        # in this process and day by day, as the first day nearly always has a sample
        for _, tasks in groupby(self._surveys(beat, begin, end, _first, days=1), key=lambda task: task.begin):
            firsts = [first for task in tasks for _, first in _figures_in(self.table, task)]
            if firsts:
                return max(begin, whole_hour(min(firsts), end))
        raise NoSamples(
            f"{self.table.storage.uri}: has no sample of a node in this period: {self.hours} are in it (--begin, "
            "--end, --days)"
        )

    def nodes_of(self, beat: NamedBeats, begin: float, end: float) -> dict[str, Node]:
        """Return the scrapes of each node in a period of whole hours. Raises `NoSamples` if there is none."""
        hours: dict[Scraped, dict[int, Hour]] = defaultdict(dict)
        for scraped, by_hour in self._surveyed(beat, begin, end, _scrapes):
            for hour, (busiest, count) in by_hour.items():
                # of several series that show scrapes, the larger numbers count
                so_far = hours[scraped].get(hour, Hour(0.0, 0.0))
                hours[scraped][hour] = Hour(max(so_far.busiest, busiest), max(so_far.scrapes, count))
        return nodes_by_hours(hours, end - begin)

    def gaps_of(self, beat: NamedBeats, begin: float, end: float, step_s: float) -> list[tuple[str, float, float]]:
        """Return the node, begin and end of all times without a sample, in quarters of an hour."""
        seen: dict[str, set[int]] = {node: set() for node in beat.node_of.values()}
        for (node, _), quarters in self._surveyed(beat, begin, end, partial(_quarters, step_s)):
            seen[node].update(quarters)
        return gaps_between(seen, begin, end)

    def _surveyed(self, beat: NamedBeats, begin: float, end: float, figure: _Figure) -> Iterator[tuple[Scraped, Any]]:
        """Yield the figures of all series that show scrapes of a node, for each part of the period."""
        for figures in self.engine.map(partial(_figures_in, self.table), self._surveys(beat, begin, end, figure)):
            yield from figures

    def _surveys(
        self,
        beat: NamedBeats,
        begin: float,
        end: float,
        figure: _Figure,
        days: int | None = None,
    ) -> list[_Survey]:
        """Return the tasks for the figures of a period, in order of time; a task has `days`, or as many as fit."""
        by_shard: dict[int, dict[int, Scraped]] = defaultdict(dict)
        for number, recorded in self.series.items():
            scraped = scraped_by(beat, recorded.labels) if recorded.labels[NAME] in beat.names else None
            if scraped is not None:
                by_shard[recorded.shard][number] = scraped
        if days is None:
            largest_shard = max(map(len, by_shard.values()), default=1)
            days = max(1, int(_MOST_ROWS * SHORTEST_S / _DAY_S) // largest_shard)
        length_s = days * _DAY_S
        files = shards_by(self.table, self.table.files())
        return [
            _Survey(files[shard], numbers, since, min(end, since + length_s), figure)
            for since in range(int(begin), int(end), length_s)
            for shard, numbers in by_shard.items()
        ]


def _latest_in(table: Table, files: Sequence[File], numbers: Sequence[int], at: float) -> list[tuple[int, float]]:
    """Return the `series_id` and the value at a Unix time of all series that have one."""
    latest = []
    for number, track in tracks_in(table, files, numbers, at, at).items():
        (value,), (has_value,) = track.at(np.array([round(at * 1_000)]))
        if has_value:
            latest.append((number, float(value)))
    return latest


@dataclass(frozen=True, slots=True)
class _Survey:
    """Task for the figures of series of one shard that show scrapes, in a part of the period."""

    files: Sequence[File]
    scraped: Mapping[int, Scraped]
    """Node and server by `series_id`."""
    begin: float
    end: float
    figure: _Figure


def _figures_in(table: Table, task: _Survey) -> list[tuple[Scraped, Any]]:
    """Return the figures of a task that are not None."""
    tracks = tracks_in(table, task.files, task.scraped, task.begin, task.end)
    figures = ((task.scraped[number], task.figure(track, task.begin, task.end)) for number, track in tracks.items())
    return [(scraped, figure) for scraped, figure in figures if figure is not None]


def _first(track: Track, begin: float, end: float) -> float | None:
    """Return the time of the first sample in a period, a Unix time in seconds; None without one."""
    times = track.times_ms[~track.ended]
    times = times[(times > begin * 1_000) & (times <= end * 1_000)]
    return float(times[0]) / 1_000 if len(times) else None


def _scrapes(track: Track, begin: float, end: float) -> Mapping[int, tuple[float, float]]:
    """Return by clock hour the numbers of samples in its busiest window (`WINDOW_S`) and in the hour."""
    return scrapes_by_hour(track, begin, end, WINDOW_S)


def _quarters(step_s: float, track: Track, begin: float, end: float) -> list[int]:
    """Return the numbers of quarters of an hour with a value at a step; a step at a border is in the earlier one."""
    window = Window([track], Samples(name=""), begin, end, step_s)
    times: Times = window.steps[0]
    quarters: list[int] = np.unique((times - 1) // (QUARTER_S * 1_000)).tolist()
    return quarters


def _without_targets(question: Question) -> Question:
    """Return a question without the targets of its group, which workers do not need."""
    return replace(question, group=replace(question.group, targets={}))


def _divided(series: Sequence[_TargetSeries], samples: float) -> Iterator[Sequence[_TargetSeries]]:
    """Divide targets among tasks, by the memory of a task; each series has about `samples` samples."""
    chunk: list[_TargetSeries] = []
    rows = 0.0
    for target_series in series:
        target_rows = len(target_series.numbers) * samples
        if chunk and rows + target_rows > _MOST_ROWS:
            yield chunk
            chunk, rows = [], 0.0
        chunk.append(target_series)
        rows += target_rows
    if chunk:
        yield chunk


def _answered(table: Table, task: _Task) -> list[_NumberedAnswer]:
    """Answer the questions of a task."""
    questions = [question for group_questions in task.questions.values() for _, question in group_questions]
    begin, end = min(question.begin for question in questions), max(question.end for question in questions)
    numbers = {number for target_series in task.series for number in target_series.numbers}
    tracks = tracks_in(table, task.files, numbers, begin, end)
    answers: list[_NumberedAnswer] = []
    for target_series in task.series:
        target_tracks = [tracks[number] for number in target_series.numbers if number in tracks]
        if not target_tracks:
            continue
        windows: dict[tuple[float, float], Window] = {}
        for number, question in task.questions[target_series.group]:
            span = question.begin, question.end
            if span not in windows:
                windows[span] = Window(target_tracks, question.group.samples, *span, task.step_s)
            values = answer(question.query, windows[span])
            if values:
                answers.append((number, target_series.target, values))
    return answers
