"""
Shadow quotas over usage history as it grows: throttles of the new requests under candidates, step by step.

Each step decides the requests that came to the history since the step before, shard by shard, from the state in a file
for each shard (`replay.continued`). One commit of the table `shadow` adds the results, and its number names the
manifest with the files that the next step begins with: a killed step has no effect. A batch of a stream that comes
again was added to the history once, and so is decided once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.catalog import shadow_stream as catalog
from quotascope.metrics.catalog.family import OVERFLOW, Family
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.candidates import Candidate

from ..columns import column
from ..errors import NoTable, NotWritten, PipelineError, UnreachableTable
from ..history.store import History, table_of
from ..releases import Followed, brokers_of, followed_by
from ..replay import RESULTS, ReplaySettings
from ..replay.continued import HOLD_MS, Carried, Part, fingerprint, proceed
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..table import File, Map, Table, writing
from ..table.storage import Storage

SHADOW: Final = pa.schema([
    *RESULTS,
    column("rules", pa.string(), "Names the rules of all candidates: rows of others do not continue these."),
    column("timestamp", pa.int64(), "ms since 1970, UTC: until when the requests of the row were decided."),
    column("step", pa.int64(), "Number of the step, which grows: us since 1970, UTC, when it began."),
])  # fmt: skip
"""
Schema of the decisions of each step, by broker: figures add up over the steps.

Those that say "longest", and `recovery_ms`, are the largest.
"""
KEY: Final = ("candidate", "quota_type", "broker", "user", "client_id")
"""Key columns, in the order of the labels of series."""
COUNTED: Final = ("throttled_requests", "throttled_ms", "refused_requests", "refused_mutations")
"""Columns of the counters."""
_SUMMED: Final[dict[str, Any]] = {name: "sum" for name in RESULTS.names if name not in (*KEY, "throttled_share")} | {
    "longest_throttle_ms": "max",
    "recovery_ms": "max",
    "late_ms": "max",
    "limit": "last",
    "level": "last",
}
"""Aggregation of the figures of several steps."""
_HIT: Final = (pc.field("throttled_requests") > 0) | (pc.field("refused_requests") > 0)
"""Filter of rows with a throttled or refused request."""
MOST_ENTITIES: Final = 20_000
"""Number of entities on brokers under shadows that have series of their own; further ones are counted together."""
Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = Mapping[Family, Mapping[Labels, float]]
_Shard = tuple[int, int | None, Sequence[File]]
"""Number of a shard, or 0 for all together; the step that saved its state, None for none; and its new files."""


class State(NamedTuple):
    """File with the state of a shard."""

    step: int
    """Step that wrote it."""
    waiting: int
    """Number of requests in it that wait for earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """
    End of a step, from which the next one continues.

    It is a file beside those of the shards, named by the step's number.
    """

    version: int
    """Last commit of the history whose requests were taken over."""
    until_ms: int = 0
    """Time (ms since 1970, UTC) up to which requests were decided; 0 before the first."""
    late: int = 0
    """Number of late requests since these rules were given for the first time."""
    states: Mapping[int, State] = field(default_factory=dict)
    """States by number of the shard."""
    kafka: Followed = field(default_factory=Followed)
    """Release that the step followed, and those of earlier steps."""

    def next(self, version: int, states: Mapping[int, State], part: Part, kafka: Followed) -> Manifest:
        """Return the end of the step after this one."""
        earlier_releases = self.kafka.earlier
        if self.until_ms and not kafka.alike(self.kafka):
            earlier_releases = (*earlier_releases, (self.kafka.words, self.until_ms))
        return Manifest(
            version=version,
            until_ms=max(self.until_ms, part.until_ms),
            late=self.late + part.late,
            states={**self.states, **states},
            kafka=replace(kafka, earlier=earlier_releases),
        )


class _States:
    """Files between two steps, in the folder `shadow-state` beside the tables: one for each shard, and a manifest."""

    def __init__(self, folder: str, rules: str) -> None:
        self._storage = Storage(f"{folder}/shadow-state")
        self._rules = rules

    def ended(self, step: int) -> Manifest:
        """Return the end of a step. Raises `UnreachableTable`."""
        path = f"{self._rules}/{step}.json"
        try:
            with self._storage.filesystem.open_input_stream(path) as source:
                return msgspec.json.decode(source.read(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise self._unreachable(path, error) from error

    def end(self, step: int, manifest: Manifest) -> None:
        """Write the end of a step, before it is committed. Raises `NotWritten`."""
        try:
            self._storage.filesystem.create_dir(self._rules, recursive=True)
            with self._storage.filesystem.open_output_stream(f"{self._rules}/{step}.json") as sink:
                sink.write(msgspec.json.encode(manifest))
        except OSError as error:
            raise NotWritten(self._storage.uri, error) from error

    def loaded(self, number: int, step: int) -> Carried:
        """Return the state of a shard after a step. Raises `UnreachableTable`."""
        path = self._path(number, step)
        try:
            with self._storage.filesystem.open_input_stream(path, "zstd") as source:
                return Carried.loaded(pa.ipc.open_stream(source).read_all())
        except (OSError, pa.ArrowException, LookupError, ValueError) as error:
            raise self._unreachable(path, error) from error

    def save(self, number: int, step: int, saved: pa.Table) -> None:
        """Write the state of a shard. Raises `NotWritten`."""
        try:
            self._storage.filesystem.create_dir(self._rules, recursive=True)
            with (
                self._storage.filesystem.open_output_stream(self._path(number, step), "zstd") as sink,
                pa.ipc.new_stream(sink, saved.schema) as writer,
            ):
                writer.write_table(saved)
        except OSError as error:
            raise NotWritten(self._storage.uri, error) from error

    def clean(self, step: int, manifest: Manifest) -> None:
        """Remove the files of steps before a committed one, also of killed steps, unless its manifest names them."""
        needed = {self._path(number, state.step) for number, state in manifest.states.items()}
        try:
            infos = self._storage.listing(self._rules)
        except OSError:  # the next step looks again
            return
        for info in infos:
            number = info.base_name.partition(".")[0].rpartition("-")[2]  # the step in `SHARD-STEP.arrow`, `STEP.json`
            # files with a later number are of a process that continues from this step
            if number.isdecimal() and int(number) < step and info.path not in needed:
                self._storage.remove(info.path)

    def _path(self, number: int, step: int) -> str:
        """Return the path of the state of a shard after a step."""
        return f"{self._rules}/{number}-{step}.arrow"

    def _unreachable(self, path: str, error: Exception) -> UnreachableTable:
        """Return the error for a file that cannot be read."""
        remedy = "restore it, or remove the folder and the table `shadow` to begin again"
        return UnreachableTable(self._storage.uri, f"its file {path}", error, remedy)


def _steps_of(rules: str, history: Table) -> str:
    """Return the id under which the table `shadow` counts the steps of some rules over a history."""
    return f"shadow {rules} of {history.identity}"


def _step_after(last_step: int | None) -> int:
    """
    Return the number of a step that begins now.

    Two processes at once get different numbers, and so different files.
    """
    return max(time.time_ns() // 1_000, 1 + (last_step or 0))


class ShadowStream:
    """
    Decisions of candidates over a history, from the moment at which they were first given.

    Args:
        folder: folder of the history.
        history: history in the folder.
        candidates: the shadows' rules.
        hold_ms: time for which requests wait for earlier ones.

    Raises:
        TableError: the tables cannot be read or created.

    """

    def __init__(self, folder: str, history: History, candidates: Sequence[Candidate], hold_ms: int = HOLD_MS) -> None:
        detail = history.detail
        self._folder = folder.rstrip("/")
        self.table = Table.create(f"{self._folder}/shadow", SHADOW, detail.layout)
        self.rules = fingerprint(candidates)
        self._history = detail
        self._state = _States(self._folder, self.rules)
        self._candidates, self._hold_ms = tuple(candidates), hold_ms
        self._brokers: set[str] = set()
        self._settings = ReplaySettings(per_broker=True)
        self._together = CandidateRules(candidates).across_users
        self._name = _steps_of(self.rules, detail)
        if self.table.last_epoch(self._name) is None:
            step = _step_after(None)
            self._state.end(step, Manifest(version=detail.version))
            self.table.advance(self._name, [], after_epoch=None, epoch=step)
        self.kafka = self._last()[1].kafka
        """Release that the shadows follow: the logs name it, step by step."""

    @property
    def late(self) -> int:
        """Requests that came late since these rules were first given."""
        return self._last()[1].late

    def _last(self) -> tuple[int, Manifest]:
        """Return the number of the last step, and its end."""
        step = self.table.last_epoch(self._name) or 0
        return step, self._state.ended(step)

    def step(self, map_items: Map, *, all_of_it: bool = False, now_ms: int | None = None) -> Part:
        """
        Decide the requests that came since the last step; return the results with a throttled or a refused request.

        Args:
            map_items: maps the work over shards: `map`, or that of an engine.
            all_of_it: whether to decide all requests, without waiting for earlier ones.
            now_ms: present time, ms since 1970, UTC; None reads the clock.

        Raises:
            LostCommit: another process did the same meanwhile; nothing was added.
            TableError: a table could not be read or written; nothing was added, and the next step begins where this one
                did.

        """
        with writing([self.table.storage]):
            return self._step(map_items, 0 if all_of_it else self._hold_ms, now_ms or time.time_ns() // 1_000_000)

    def _step(self, map_items: Map, hold_ms: int, now_ms: int) -> Part:
        """
        Decide and commit a step.

        The states of the shards and the manifest are written before the commit whose number names them: a step that is
        killed in between leaves files behind, which the next one removes.
        """
        last_step, manifest = self._last()
        step = _step_after(last_step)
        version, files = self._history.added_since(manifest.version)
        shards = list(self._shards(files, manifest.states))
        if not shards:
            return Part(results=SHADOW.empty_table())
        self._follow(files)
        decide = partial(self._decide, step=step, hold_ms=hold_ms, now_ms=now_ms)
        staged, parts = zip(*map_items(decide, shards), strict=True)
        part_of_step = Part(
            results=pa.concat_tables([part.results for part in parts]),
            decided=sum(part.decided for part in parts),
            waiting=sum(part.waiting for part in parts),
            late=sum(part.late for part in parts),
            until_ms=max(part.until_ms for part in parts),
        )
        states = {number: State(step, part.waiting) for (number, *_), part in zip(shards, parts, strict=True)}
        end = manifest.next(version, states, part_of_step, self.kafka)
        result_files = [file for files_of_shard in staged for file in files_of_shard]
        with self.table.discarded_unless_committed(result_files):
            self._state.end(step, end)
        self.table.advance(self._name, result_files, after_epoch=last_step, epoch=step)
        self.kafka = end.kafka
        self._state.clean(step, end)
        return part_of_step

    def _follow(self, files: Sequence[File]) -> None:
        """Follow the releases that the logs name by now, by broker."""

        def brokers() -> set[str]:
            """Return the brokers so far; after the first call, only the new files are read."""
            self._brokers |= brokers_of(self._history, files if self._brokers else self._history.files())
            return self._brokers

        self.kafka = followed_by(self._folder, self._history, Followed(), brokers)
        self._settings = replace(self._settings, release=self.kafka.release, releases=self.kafka.by_broker)

    def _shards(self, files: Iterable[File], states: Mapping[int, State]) -> Iterator[_Shard]:
        """Yield the shards with new files, and those in which requests wait."""
        new: dict[int, list[File]] = {}
        for file in files:
            new.setdefault(0 if self._together else file.shard, []).append(file)
        for number in range(1 if self._together else self._history.layout.shards):
            saved = states.get(number)
            if number in new or (saved is not None and saved.waiting):
                yield number, None if saved is None else saved.step, new.get(number, [])

    def _decide(self, shard: _Shard, *, step: int, hold_ms: int, now_ms: int) -> tuple[list[File], Part]:
        """Decide the requests of a shard on a worker, stage the results, and save the state."""
        number, saved_step, files = shard
        carried = Carried() if saved_step is None else self._state.loaded(number, saved_step)
        rows = self._history.read(NEEDED, files=files)
        part = proceed(carried, rows, CandidateRules(self._candidates), self._settings, now_ms=now_ms, hold_ms=hold_ms)
        results: Any = part.results
        added_columns: dict[str, Any] = {"rules": self.rules, "timestamp": part.until_ms, "step": step}
        for name, value in added_columns.items():
            results = results.append_column(SHADOW.field(name), pa.repeat(value, len(results)))
        staged = self.table.stage(results)
        for file in staged:
            self.table.storage.restrict(file, files, made_of=self._history.storage)
        self._state.save(number, step, carried.saved())
        return staged, replace(part, results=results.filter(_HIT))

    def counted(self) -> pa.Table:
        """Return `KEY`, the sums of `COUNTED` since these rules were first given, and the first `step` of each."""
        rows = self.table.read([*KEY, *COUNTED, "rules", "step"])
        grouped = rows.filter((pc.field("rules") == self.rules) & _HIT).group_by(list(KEY))
        sums = grouped.aggregate([*((name, "sum") for name in COUNTED), ("step", "min")])
        return sums.rename_columns([*KEY, *COUNTED, "step"])


class ShadowCounters:
    """
    Counts of each entity under each shadow, which never fall.

    Args:
        counted: counts so far, rows of `ShadowStream.counted`.
        late: late requests so far.

    """

    def __init__(self, counted: Iterable[Mapping[str, Any]], late: int = 0) -> None:
        self._lock = Lock()
        self._counts: dict[Labels, tuple[int, int, int]] = {}
        """Throttled requests, their throttle time in ms, and refused mutations, by `KEY`."""
        self._late = self._until_ms = 0
        self.add(counted, late)

    def add(self, counted: Iterable[Mapping[str, Any]], late: int = 0, until_ms: int = 0) -> None:
        """Add the decisions of steps, up to `until_ms` (epoch ms)."""
        with self._lock:
            self._late += late
            self._until_ms = max(self._until_ms, until_ms)
            # in the order of arrival, so that the same entities have series after a restart
            for row in sorted(counted, key=itemgetter("step", *KEY)):
                key: Labels = itemgetter(*KEY)(row)
                if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
                    key = (*key[:3], OVERFLOW, OVERFLOW)
                requests, ms, refused = self._counts.get(key, (0, 0, 0))
                requests, ms = requests + row["throttled_requests"], ms + row["throttled_ms"]
                self._counts[key] = requests, ms, refused + row["refused_mutations"]

    def read(self) -> tuple[Series]:
        """Return all series by their family, then by the values of its labels."""
        with self._lock:
            mutating = QuotaType.CONTROLLER_MUTATION.label
            series: Series = {
                catalog.SHADOW_THROTTLED_REQUESTS: {key: counts[0] for key, counts in self._counts.items()},
                catalog.SHADOW_THROTTLE_SECONDS: {key: counts[1] / 1_000 for key, counts in self._counts.items()},
                catalog.SHADOW_REFUSED_MUTATIONS: {
                    (shadow, *entity): counts[2]
                    for (shadow, kind, *entity), counts in self._counts.items()
                    if kind == mutating
                },
                catalog.SHADOW_LATE_REQUESTS: {(): self._late},
                catalog.SHADOW_DECIDED: {(): self._until_ms / 1_000} if self._until_ms else {},
            }
        return (series,)


def series_of(family: Family, series: tuple[Series]) -> Mapping[Labels, float]:
    """Return the series of a family in the answer of `ShadowCounters.read`."""
    return series[0][family]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The answer of a stream."""

    results: pa.Table
    """`RESULTS` of all of its decisions."""
    kafka: Followed
    """Release that it followed at last, and earlier ones."""


def decided_by(folder: str, candidates: Sequence[Candidate]) -> Decided:
    """
    Return the decisions of a stream under these candidates.

    Raises:
        NoHistory: the folder has no history.
        PipelineError: it has decided nothing under them, or its table cannot be read.

    """
    rules, folder = fingerprint(candidates), folder.rstrip("/")
    steps = rows = None
    with suppress(NoTable):
        table = table_of(folder, "shadow", SHADOW)
        steps = table.last_epoch(_steps_of(rules, History.open(folder).detail))
        rows = table.read().filter(pc.field("rules") == rules)
    if steps is None or rows is None or not len(rows):
        about = "`shadow stream` has decided nothing under these candidates; without --decided they are replayed"
        raise PipelineError(f"{folder}: {about}")
    return Decided(results=added_up(rows), kafka=_States(folder, rules).ended(steps).kafka)


def added_up(rows: pa.Table) -> pa.Table:
    """Return rows of `SHADOW` under one set of rules as `RESULTS`, which a page of `whatif` draws."""
    key = [name for name in KEY if name != "broker"]
    sums: Any = rows.sort_by("timestamp").group_by(key, use_threads=False).aggregate([*_SUMMED.items()])
    columns = {name: sums[f"{name}_{how}"] for name, how in _SUMMED.items()} | {name: sums[name] for name in key}
    active: Any = pc.max_element_wise(columns["active_ms"].cast(pa.float64()), 1.0)
    columns["throttled_share"] = pc.divide(columns["muted_ms"], active)
    columns["broker"] = pa.nulls(len(sums), pa.string())
    table: pa.Table = pa.table({name: columns[name] for name in RESULTS.names}).cast(RESULTS)
    return table.filter(pc.field("requests") > 0)
