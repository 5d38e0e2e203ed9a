"""The past of a cluster in a table of raw samples, of which the same questions are asked as of a server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
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
"""Number of samples that a task has in memory, of 17 bytes each; about ten times as much while they are sorted."""

_Asked: TypeAlias = tuple[int, int, Sequence[Value]]
"""A question and a target by their places, and the answer."""


class NamedBeats(Beats, Protocol):
    """Series whose samples are the scrapes of the nodes, by the names of their metrics."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of these metrics."""
        ...


@dataclass(frozen=True, slots=True)
class _Series:
    """The series of one target of a group, by `series_id`."""

    group: int
    target: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    """Targets of one shard, or of any, and the questions about their groups in a part of the period."""

    files: Sequence[File]
    series: Sequence[_Series]
    questions: Mapping[int, Sequence[tuple[int, Question]]]
    """Numbered questions by group; their groups are left out, but for how they are asked for."""
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
        """Yield the answers, which are computed where the samples are read: by tasks of a shard and some days each."""
        groups = {id(one.group): one.group for one in questions}
        places = {number: place for place, number in enumerate(groups)}
        targets = [self._targets(place, group) for place, group in enumerate(groups.values())]
        tasks = self._tasks(questions, places, [series for _, series in targets], step_s)
        for answered in self.engine.map(partial(_answered, self.table), tasks, progress):
            for number, target, values in answered:
                question = questions[number]
                known = targets[places[id(question.group)]][0][target]
                yield question.name, known, Answer({}, values)

    def _targets(self, place: int, group: Group) -> tuple[list[Target], list[_Series]]:
        """Return the targets of a group, and the series of each."""
        numbers: dict[Key, list[int]] = defaultdict(list)
        for number, one in self.series.items():
            labels = one.labels
            if labels[NAME] == group.samples.name:
                by = group.samples.by
                key = key_of({label: labels.get(label, "") for label in by} if by else labels)
                if key in group.targets:
                    numbers[key].append(number)
        series = [_Series(place, target, tuple(of)) for target, of in enumerate(numbers.values())]
        return [group.targets[key] for key in numbers], series

    def _tasks(
        self,
        questions: Sequence[Question],
        places: Mapping[int, int],
        series: Sequence[Sequence[_Series]],
        step_s: float,
    ) -> list[_Task]:
        by_shard: dict[int | None, list[_Series]] = defaultdict(list)
        for of_group in series:
            for one in of_group:
                shards = {self.series[number].shard for number in one.numbers}
                # sums over entities of several shards read all of them
                by_shard[shards.pop() if len(shards) == 1 else None].append(one)
        most = max((len(of_shard) for of_shard in by_shard.values()), default=1)
        days = max(1, int(_MOST_ROWS * step_s / _DAY_S) // max(1, most))
        parts: dict[int, list[tuple[int, Question]]] = defaultdict(list)
        for number, question in enumerate(questions):
            parts[int((question.end - 1) // (days * _DAY_S))].append((number, question))
        files = shards_by(self.table, self.table.files())
        tasks = []
        for _, part in sorted(parts.items()):
            begin, end = min(asked.begin for _, asked in part), max(asked.end for _, asked in part)
            of_groups: dict[int, list[tuple[int, Question]]] = defaultdict(list)
            for number, question in part:
                of_groups[places[id(question.group)]].append((number, _without_targets(question)))
            for shard, of_shard in by_shard.items():
                read = all_files(files) if shard is None else files[shard]
                chosen = [
                    file for file in read if file.overlaps(round(begin * 1_000) - LOOKBACK_MS, round(end * 1_000) + 1)
                ]
                asked_of = [one for one in of_shard if one.group in of_groups]
                tasks += [_Task(chosen, some, of_groups, step_s) for some in _divided(asked_of, (end - begin) / step_s)]
        return tasks

    def latest(self, names: Collection[str], at: float) -> list[tuple[Labels, float]]:
        """Return the labels and the values that series of some metrics have at a Unix time."""
        by_shard: dict[int, list[int]] = defaultdict(list)
        for number, one in self.series.items():
            if one.labels[NAME] in names:
                by_shard[one.shard].append(number)
        files = shards_by(self.table, self.table.files())
        tasks = [(tuple(files[shard]), tuple(numbers), at) for shard, numbers in by_shard.items()]
        found = chain.from_iterable(map(partial(_latest_in, self.table), tasks))  # a few minutes of samples
        return [(self.series[number].labels, value) for number, value in found]

    def begin_of(self, beat: NamedBeats, begin: float, end: float) -> float:
        """Return the first hour of a period that is seen whole. Raises `NoSamples` if there is none."""
        # here and day by day, as the first day nearly always has one
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
            of_node = hours[scraped]
            for hour, (busiest, count) in by_hour.items():
                known = of_node.get(hour, Hour(0.0, 0.0))
                of_node[hour] = Hour(max(known.busiest, busiest), max(known.scrapes, count))
        return nodes_by_hours(hours, end - begin)

    def gaps_of(self, beat: NamedBeats, begin: float, end: float, step_s: float) -> list[tuple[str, float, float]]:
        """Return the times without a sample of a node: its name, begin and end."""
        seen: dict[str, set[int]] = {node: set() for node in beat.node_of.values()}
        for (node, _), quarters in self._surveyed(beat, begin, end, partial(_quarters, step_s)):
            seen[node].update(quarters)
        return gaps_between(seen, begin, end)

    def _surveyed(
        self, beat: NamedBeats, begin: float, end: float, figure: Callable[[Track, float, float], Any]
    ) -> Iterator[tuple[Scraped, Any]]:
        """Yield a figure of each series that shows scrapes of a node, for each part of the period; None is left out."""
        for figures in self.engine.map(partial(_figures_in, self.table), self._surveys(beat, begin, end, figure)):
            yield from figures

    def _surveys(
        self,
        beat: NamedBeats,
        begin: float,
        end: float,
        figure: Callable[[Track, float, float], Any],
        days: int | None = None,
    ) -> list[_Survey]:
        """Return the tasks of a survey, by time, of so many days each, or as many as fit in memory."""
        by_shard: dict[int, dict[int, Scraped]] = defaultdict(dict)
        for number, one in self.series.items():
            scraped = scraped_by(beat, one.labels) if one.labels[NAME] in beat.names else None
            if scraped is not None:
                by_shard[one.shard][number] = scraped
        most = max(map(len, by_shard.values()), default=1)
        length_s = (days or max(1, int(_MOST_ROWS * SHORTEST_S / _DAY_S) // most)) * _DAY_S
        files = shards_by(self.table, self.table.files())
        return [
            _Survey(files[shard], numbers, since, min(end, since + length_s), figure)
            for since in range(int(begin), int(end), length_s)
            for shard, numbers in by_shard.items()
        ]


def _latest_in(table: Table, task: tuple[Sequence[File], Sequence[int], float]) -> list[tuple[int, float]]:
    files, numbers, at = task
    latest = []
    for number, track in tracks_in(table, files, numbers, at, at).items():
        (value,), (there,) = track.at(np.array([round(at * 1_000)]))
        if there:
            latest.append((number, float(value)))
    return latest


@dataclass(frozen=True, slots=True)
class _Survey:
    """Series of one shard that show scrapes, and a part of the period."""

    files: Sequence[File]
    scraped: Mapping[int, Scraped]
    begin: float
    end: float
    figure: Callable[[Track, float, float], Any]


def _figures_in(table: Table, task: _Survey) -> list[tuple[Scraped, Any]]:
    tracks = tracks_in(table, task.files, task.scraped, task.begin, task.end)
    figures = ((task.scraped[number], task.figure(track, task.begin, task.end)) for number, track in tracks.items())
    return [(scraped, figure) for scraped, figure in figures if figure is not None]


def _first(track: Track, begin: float, end: float) -> float | None:
    times = track.times_ms[~track.ended]
    times = times[(times > begin * 1_000) & (times <= end * 1_000)]
    return float(times[0]) / 1_000 if len(times) else None


def _scrapes(track: Track, begin: float, end: float) -> Mapping[int, tuple[float, float]]:
    return scrapes_by_hour(track, begin, end, WINDOW_S)


def _quarters(step_s: float, track: Track, begin: float, end: float) -> list[int]:
    """Return the quarters of an hour since 1970 with a step that has a value; a step counts for the one it ends."""
    window = Window([track], Samples(name=""), begin, end, step_s)
    times: Times = window.steps[0]
    quarters: list[int] = np.unique((times - 1) // (QUARTER_S * 1_000)).tolist()
    return quarters


def _without_targets(question: Question) -> Question:
    """Return a question without what the driver alone needs, so that little is sent."""
    return replace(question, group=replace(question.group, targets={}))


def _divided(series: Sequence[_Series], samples: float) -> Iterator[Sequence[_Series]]:
    """Yield targets by as many as one task can have in memory, each series with a number of samples."""
    some: list[_Series] = []
    count = 0.0
    for one in series:
        if some and count + len(one.numbers) * samples > _MOST_ROWS:
            yield some
            some, count = [], 0.0
        some.append(one)
        count += len(one.numbers) * samples
    if some:
        yield some


def _answered(table: Table, task: _Task) -> list[_Asked]:
    """Answer the questions of a task."""
    questions = [one for of_group in task.questions.values() for _, one in of_group]
    begin, end = min(one.begin for one in questions), max(one.end for one in questions)
    tracks = tracks_in(table, task.files, {number for one in task.series for number in one.numbers}, begin, end)
    answers: list[_Asked] = []
    for one in task.series:
        of_target = [tracks[number] for number in one.numbers if number in tracks]
        windows: dict[tuple[float, float], Window] = {}
        for number, question in task.questions[one.group] if of_target else ():
            span = question.begin, question.end
            if span not in windows:
                windows[span] = Window(of_target, question.group.samples, *span, task.step_s)
            values = answer(question.query, windows[span])
            if values:
                answers.append((number, one.target, values))
    return answers
