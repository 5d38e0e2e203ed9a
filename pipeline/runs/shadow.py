"""
Shadow quotas over usage history as it grows: what candidates would have done to the new requests, step by step.

Each step decides the requests that came to the history since the step before, bucket by bucket, from what is carried in a file for each
bucket (`replay.continued`). One commit of the table `shadow` adds the results, and names the files that the next step begins with: a step
that is killed anywhere never was. A batch of a stream that comes again was added to the history once, and so is decided once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from threading import Lock
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import shadow_stream as catalog
from quotascope.metrics.catalog.family import OVERFLOW, Family
from quotascope.quotas.candidates import Candidate

from ..errors import NoTable, NotWritten, PipelineError, UnreachableTable
from ..history.store import History, table_of
from ..releases import Followed, followed_by
from ..replay import RESULTS, ReplaySettings
from ..replay.continued import HOLD_MS, Carried, Part, fingerprint, proceed
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..table import File, Run, Table
from ..table.storage import Storage

SHADOW: Final = pa.schema([
    *RESULTS,
    pa.field("rules", pa.string(), nullable=False, metadata={"about": "Names the rules of all candidates: rows of others do not continue these."}),
    pa.field("timestamp", pa.int64(), nullable=False, metadata={"about": "ms since 1970, UTC: until when the requests of the row were decided."}),
    pa.field("step", pa.int64(), nullable=False, metadata={"about": "Number of the step, which grows."}),
])  # fmt: skip
"""What each step decided, by broker: figures add up over the steps, those that say "longest", and `recovery_ms`, are the largest."""
KEY: Final = ("candidate", "quota_type", "broker", "user", "client_id")
"""As the labels of series have it."""
COUNTED: Final = ("throttled_requests", "throttled_ms", "refused_requests", "refused_mutations")
"""The counters."""
_SUMMED: Final[dict[str, Any]] = {name: "sum" for name in RESULTS.names if name not in (*KEY, "throttled_share")} | {
    "longest_throttle_ms": "max",
    "recovery_ms": "max",
    "late_ms": "max",
    "limit": "last",
    "level": "last",
}
"""How the figures of several steps make one."""
_HIT: Final = (pc.field("throttled_requests") > 0) | (pc.field("refused_requests") > 0)
"""Whether a request was throttled or refused."""
MOST_ENTITIES: Final = 20_000
"""Entities on brokers under shadows that have series of their own; further ones are counted together."""
Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = Mapping[Family, Mapping[Labels, float]]
_Bucket = tuple[int, int | None, Sequence[File]]
"""Number of a bucket, or 0 for all together; the step that saved what it carries, None for none; and its new files."""


class ShadowStream:
    """
    Candidates over a history, from the moment at which they were first given.

    Args:
        folder: of the history.
        history: in it.
        candidates: the shadows.
        hold_ms: how long requests wait for earlier ones.

    Raises:
        TableError: the tables cannot be read or made.

    """

    def __init__(self, folder: str, history: History, candidates: Sequence[Candidate], hold_ms: int = HOLD_MS) -> None:
        at, detail = folder.rstrip("/"), history.detail
        self.table = Table.create(f"{at}/shadow", SHADOW, detail.layout)
        self.rules = fingerprint(candidates)
        self._history = detail
        self._state = Storage(f"{at}/shadow-state")
        self._candidates, self._hold_ms = tuple(candidates), hold_ms
        release = followed_by(folder, detail, Followed()).release
        self._settings = ReplaySettings(per_broker=True, release=release)
        self._together = CandidateRules(candidates).across_users
        self._name = f"shadow {self.rules} of {detail.identity}"
        self._version = f"{self._name}: version"
        self._waiting: dict[int, int] = {}
        """Requests that wait, by bucket; of one that is not in it they may."""
        if self.table.last_epoch(self._name) is None:
            notes = {self._version: detail.version}
            self.table.advance(self._name, [], after=None, epoch=0, notes=notes)

    @property
    def late(self) -> int:
        """Requests that came late since these rules were first given."""
        return self.table.last_epoch(f"{self._name}: late") or 0

    def step(self, run: Run, *, all_of_it: bool = False) -> Part:
        """
        Decide what came to the history since the last step; of the results those with a throttled or a refused request are returned.

        Args:
            run: where the work is done, bucket by bucket.
            all_of_it: whether no request waits for earlier ones.

        Raises:
            LostCommit: another process did the same meanwhile; nothing was added.
            TableError: something could not be read or written; nothing was added, and the next step begins where this one did.

        """
        after = self.table.last_epoch(self._name)
        epoch = (after or 0) + 1
        version, files = self._history.added_since(self.table.last_epoch(self._version))
        buckets = list(self._buckets(files))
        if not buckets:
            return Part(results=SHADOW.empty_table())
        decide = partial(self._decide, epoch=epoch, hold_ms=0 if all_of_it else self._hold_ms)
        staged, parts = zip(*run(decide, buckets), strict=True)
        late = sum(part.late for part in parts)
        notes = {self._version: version, f"{self._name}: late": self.late + late}
        notes |= {self._of(number): epoch for number, _, _ in buckets}
        made = [file for files in staged for file in files]
        self.table.advance(self._name, made, after=after, epoch=epoch, notes=notes)
        for (number, before, _), part in zip(buckets, parts, strict=True):
            self._waiting[number] = part.waiting
            if before is not None:
                self._state.remove(self._state_path(number, before))
        return Part(
            results=pa.concat_tables([part.results for part in parts]),
            decided=sum(part.decided for part in parts),
            waiting=sum(part.waiting for part in parts),
            late=late,
            until_ms=max(part.until_ms for part in parts),
        )

    def _buckets(self, files: Iterable[File]) -> Iterator[_Bucket]:
        """Those with new files, and those in which requests may wait."""
        new: dict[int, list[File]] = {}
        for file in files:
            new.setdefault(0 if self._together else file.bucket, []).append(file)
        for number in range(1 if self._together else self._history.layout.buckets):
            saved = self.table.last_epoch(self._of(number))
            if number in new or (saved is not None and self._waiting.get(number, 1)):
                yield number, saved, new.get(number, [])

    def _of(self, number: int) -> str:
        return f"{self._name}: bucket {number}"

    def _decide(self, bucket: _Bucket, *, epoch: int, hold_ms: int) -> tuple[list[File], Part]:
        """Decide the requests of a bucket on a worker; files are staged, and what is carried on is saved."""
        number, before, files = bucket
        carried = Carried() if before is None else self._loaded(number, before)
        rows = self._history.read(NEEDED, files=files)
        rules, now_ms = CandidateRules(self._candidates), time.time_ns() // 1_000_000
        part = proceed(carried, rows, rules, self._settings, now_ms=now_ms, hold_ms=hold_ms)
        found: Any = part.results
        about: dict[str, Any] = {"rules": self.rules, "timestamp": part.until_ms, "step": epoch}
        for name, value in about.items():
            found = found.append_column(SHADOW.field(name), pa.repeat(value, len(found)))
        staged = self.table.stage(found)
        for file in staged:
            self.table.storage.restrict(file, files, of=self._history.storage)
        self._save(number, epoch, carried.saved())
        return staged, replace(part, results=found.filter(_HIT))

    def _state_path(self, number: int, epoch: int) -> str:
        return f"{self.rules}/{number}-{epoch}.arrow"

    def _loaded(self, number: int, epoch: int) -> Carried:
        path = self._state_path(number, epoch)
        try:
            with self._state.filesystem.open_input_stream(path, "zstd") as source:
                return Carried.loaded(pa.ipc.open_stream(source).read_all())
        except (OSError, pa.ArrowException, LookupError, ValueError) as error:
            remedy = "restore it, or remove the folder and the table `shadow` to begin again"
            raise UnreachableTable(self._state.uri, f"its file {path}", error, remedy) from error

    def _save(self, number: int, epoch: int, saved: pa.Table) -> None:
        path = self._state_path(number, epoch)
        try:
            self._state.filesystem.create_dir(self.rules, recursive=True)
            with (
                self._state.filesystem.open_output_stream(path, "zstd") as sink,
                pa.ipc.new_stream(sink, saved.schema) as writer,
            ):
                writer.write_table(saved)
        except OSError as error:
            raise NotWritten(self._state.uri, error) from error

    def counted(self) -> pa.Table:
        """`KEY`, the sums of `COUNTED` since these rules were first given, and the first `step` of each."""
        rows = self.table.read([*KEY, *COUNTED, "rules", "step"])
        grouped = rows.filter((pc.field("rules") == self.rules) & _HIT).group_by(list(KEY))
        sums = grouped.aggregate([*((name, "sum") for name in COUNTED), ("step", "min")])
        return sums.rename_columns([*KEY, *COUNTED, "step"])


class ShadowCounters:
    """
    Counts of each entity under each shadow, which only grow.

    Args:
        counted: what was counted before, rows of `ShadowStream.counted`.
        late: requests that came late before.

    """

    def __init__(self, counted: Iterable[Mapping[str, Any]], late: int = 0) -> None:
        self._lock = Lock()
        self._counts: dict[Labels, tuple[int, int, int]] = {}
        self._late = self._until_ms = 0
        self.add(counted, late)

    def add(self, counted: Iterable[Mapping[str, Any]], late: int = 0, until_ms: int = 0) -> None:
        """Count what steps decided, and until when they did, epoch ms."""
        with self._lock:
            self._late += late
            self._until_ms = max(self._until_ms, until_ms)
            # as they came, so that after a restart the same entities have series
            for row in sorted(counted, key=itemgetter("step", *KEY)):
                key: Labels = itemgetter(*KEY)(row)
                if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
                    key = (*key[:3], OVERFLOW, OVERFLOW)
                requests, ms, refused = self._counts.get(key, (0, 0, 0))
                requests, ms = requests + row["throttled_requests"], ms + row["throttled_ms"]
                self._counts[key] = requests, ms, refused + row["refused_mutations"]

    def read(self) -> tuple[Series]:
        """All series by their family, then by the values of its labels."""
        with self._lock:
            mutating = QuotaType.CONTROLLER_MUTATION.label
            series: Series = {
                catalog.SHADOW_THROTTLED_REQUESTS: {key: each[0] for key, each in self._counts.items()},
                catalog.SHADOW_THROTTLE_SECONDS: {key: each[1] / 1_000 for key, each in self._counts.items()},
                catalog.SHADOW_REFUSED_MUTATIONS: {
                    (shadow, *entity): each[2]
                    for (shadow, kind, *entity), each in self._counts.items()
                    if kind == mutating
                },
                catalog.SHADOW_LATE_REQUESTS: {(): self._late},
                catalog.SHADOW_DECIDED: {(): self._until_ms / 1_000} if self._until_ms else {},
            }
        return (series,)


def series_of(family: Family, read: tuple[Series]) -> Mapping[Labels, float]:
    """The series of a family in what `ShadowCounters.read` returned."""
    return read[0][family]


def decided_by(folder: str, candidates: Sequence[Candidate]) -> pa.Table:
    """
    `RESULTS` of all that a stream has decided under these candidates.

    Raises:
        NoHistory: there is none.
        PipelineError: it has decided nothing under them, or its table cannot be read.

    """
    try:
        rows = table_of(folder, "shadow", SHADOW).read()
    except NoTable:
        rows = SHADOW.empty_table()
    rows = rows.filter(pc.field("rules") == fingerprint(candidates))
    if not len(rows):
        about = "`shadow stream` has decided nothing under these candidates; without --decided they are replayed"
        raise PipelineError(f"{folder}: {about}")
    return added_up(rows)


def added_up(rows: pa.Table) -> pa.Table:
    """Rows of `SHADOW` under one set of rules as `RESULTS`, which a page of `whatif` draws."""
    key = [name for name in KEY if name != "broker"]
    sums: Any = rows.sort_by("timestamp").group_by(key, use_threads=False).aggregate([*_SUMMED.items()])
    columns = {name: sums[f"{name}_{how}"] for name, how in _SUMMED.items()} | {name: sums[name] for name in key}
    active: Any = pc.max_element_wise(columns["active_ms"].cast(pa.float64()), 1.0)
    columns["throttled_share"] = pc.divide(columns["muted_ms"], active)
    columns["broker"] = pa.nulls(len(sums), pa.string())
    table: pa.Table = pa.table({name: columns[name] for name in RESULTS.names}).cast(RESULTS)
    return table.filter(pc.field("requests") > 0)
