"""
Shadow quotas over usage history as it grows: what candidates would have done to the new requests, step by step.

Each step decides the requests that came to the history since the step before, bucket by bucket, from what is carried in a file for each
bucket (`replay.continued`). One commit of the table `shadow` adds the results, and names the files that the next step begins with: a step
that is killed anywhere never was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.quotas.candidates import Candidate

from ..errors import NotWritten, PipelineError, UnreachableTable
from ..history.store import History
from ..ingest import IngestOptions, IngestReport
from ..releases import Followed, followed_by
from ..replay import RESULTS, ReplaySettings
from ..replay.compiled import compiled_at_once
from ..replay.continued import HOLD_MS, Carried, fingerprint, proceed
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..table import File, Run, Table, TableLayout, run_here
from ..table.storage import Storage
from .engine import Engine, run_of
from .ingest import ingest_topic

SHADOW: Final = pa.schema([
    *RESULTS,
    pa.field("rules", pa.string(), nullable=False, metadata={"about": "Names the rules of all candidates: rows of others do not continue these."}),
    pa.field("timestamp", pa.int64(), nullable=False, metadata={"about": "ms since 1970, UTC: until when the requests of the row were decided."}),
    pa.field("step", pa.int64(), nullable=False, metadata={"about": "Number of the step, which grows."}),
])  # fmt: skip
"""What each step decided, by broker: figures add up over the steps, those that say "longest", and `recovery_ms`, are the largest."""
KEY: Final = ("candidate", "broker", "user", "client_id", "quota_type")
COUNTED: Final = ("throttled_requests", "throttled_ms", "rejected_requests", "rejected_mutations")  # fmt: skip
"""The counters."""
_LARGEST: Final = ("longest_throttle_ms", "recovery_ms", "late_ms")
_LAST: Final = ("limit", "level")
_SHARE: Final = "throttled_share"


@dataclass(slots=True, kw_only=True)
class ShadowReport:
    """What a step did."""

    decided: int = 0
    waiting: int = 0
    """Requests that are decided by the next step, when earlier ones cannot come any more."""
    late: int = 0
    """Requests that came after that; they were decided at the time that their broker had reached."""
    until_ms: int = 0
    """When the last one was decided, epoch ms; 0 for none."""
    throttled: pa.Table = field(default_factory=SHADOW.empty_table)
    """The rows of `SHADOW` with a throttled or a refused request."""


@dataclass(frozen=True, kw_only=True)
class _Step:
    """Decides the requests of some buckets on a worker."""

    history: Table
    shadow: Table
    state: Storage
    candidates: tuple[Candidate, ...]
    settings: ReplaySettings
    rules: str
    hold_ms: int
    epoch: int
    compiles: bool
    """Whether the kernels are compiled however few the rows are: a worker of a stream has many parts to come."""

    def __call__(self, part: _Part) -> tuple[list[File], ShadowReport]:
        number, before, files = part
        carried = Carried() if before is None else self._loaded(number, before)
        batches = self.history.batches(files, NEEDED)
        rows = pa.Table.from_batches(batches, pa.schema([self.history.schema.field(name) for name in NEEDED]))  # fmt: skip
        now_ms = time.time_ns() // 1_000_000
        with compiled_at_once() if self.compiles else nullcontext():
            decided = proceed(carried, rows, CandidateRules(self.candidates), self.settings, now_ms=now_ms, hold_ms=self.hold_ms)  # fmt: skip
        found: Any = decided.results
        for name, value in (
            ("rules", self.rules),
            ("timestamp", decided.until_ms),
            ("step", self.epoch),
        ):
            found = found.append_column(SHADOW.field(name), pa.repeat(value, len(found)))  # fmt: skip
        staged = self.shadow.stage(found)
        for file in staged:
            self.shadow.storage.restrict(file, files, of=self.history.storage)
        self._save(number, carried.saved())
        hit = pc.greater(pc.add(found["throttled_requests"], found["rejected_requests"]), pa.scalar(0))  # fmt: skip
        return staged, ShadowReport(
            decided=decided.decided,
            waiting=decided.waiting,
            late=decided.late,
            until_ms=decided.until_ms,
            throttled=found.filter(hit),
        )

    def _loaded(self, number: int, epoch: int) -> Carried:
        path = state_path(self.rules, number, epoch)
        try:
            with self.state.filesystem.open_input_file(path) as source:
                return Carried.loaded(pa.ipc.open_file(source).read_all())
        except (OSError, pa.ArrowException) as error:
            raise UnreachableTable(self.state.uri, f"its file {path}", str(error), "restore it, or remove the folder and the table `shadow` to begin again") from error  # fmt: skip

    def _save(self, number: int, saved: pa.Table) -> None:
        path = state_path(self.rules, number, self.epoch)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        try:
            if self.state.is_local:
                self.state.filesystem.create_dir(self.rules, recursive=True)
            with (
                self.state.filesystem.open_output_stream(path) as sink,
                pa.ipc.new_file(sink, saved.schema, options=options) as writer,
            ):
                writer.write_table(saved)
        except OSError as error:
            raise NotWritten(self.state.uri, str(error)) from error


_Part = tuple[int, int | None, Sequence[File]]
"""Number of a bucket, or 0 for all together; the step that saved what it carries, None for none; and its new files."""


def state_path(rules: str, number: int, epoch: int) -> str:
    """Where a step saves what a bucket carries."""
    return f"{rules}/{number}-{epoch}.arrow"


class ShadowStream:
    """
    Candidates over a history, from the moment at which they were first given.

    Args:
        folder: of the history.
        history: in it.
        candidates: the shadows.
        kafka: the release that throttle times follow; that of the logs unless given.
        hold_ms: how long requests wait for earlier ones.

    Raises:
        TableError: the tables cannot be read or made.

    """

    def __init__(
        self,
        folder: str,
        history: History,
        candidates: Sequence[Candidate],
        kafka: Followed | None = None,
        hold_ms: int = HOLD_MS,
    ) -> None:
        at = folder.rstrip("/")
        detail = history.detail
        layout = TableLayout(bucket_of="user", buckets=detail.layout.buckets, day_of="timestamp")  # fmt: skip
        self.table = Table.create(f"{at}/shadow", SHADOW, layout)
        self.rules = fingerprint(candidates)
        self._history = detail
        self._state = Storage(f"{at}/shadow-state")
        self._candidates, self._hold_ms = tuple(candidates), hold_ms
        self._settings = ReplaySettings(per_broker=True, release=followed_by(folder, detail, kafka or Followed()).release)  # fmt: skip
        self._together = CandidateRules(candidates).across_users
        self._name = f"shadow {self.rules} of {detail.identity}"
        self._waiting: set[int] | None = None
        if self.table.last_epoch(self._name) is None:
            self.table.advance(self._name, [], after=None, epoch=0, notes={self._version: detail.version})  # fmt: skip

    @property
    def _version(self) -> str:
        return f"{self._name}: version"

    @property
    def late(self) -> int:
        """Requests that came late since these rules were first given."""
        return self.table.last_epoch(f"{self._name}: late") or 0

    def step(self, run: Run, *, all_of_it: bool = False) -> ShadowReport:
        """
        Decide what came to the history since the last step.

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
        parts = list(self._parts(files))
        report = ShadowReport()
        if not parts:
            return report
        step = _Step(
            history=self._history,
            shadow=self.table,
            state=self._state,
            candidates=self._candidates,
            settings=self._settings,
            rules=self.rules,
            hold_ms=0 if all_of_it else self._hold_ms,
            epoch=epoch,
            compiles=run is not run_here,
        )
        staged: list[File] = []
        waiting = set[int]()
        throttled = [report.throttled]
        for (number, _, _), (made, of_part) in zip(parts, run(step, parts), strict=True):  # fmt: skip
            staged += made
            report.decided += of_part.decided
            report.waiting += of_part.waiting
            report.late += of_part.late
            report.until_ms = max(report.until_ms, of_part.until_ms)
            throttled.append(of_part.throttled)
            if of_part.waiting:
                waiting.add(number)
        report.throttled = pa.concat_tables(throttled)
        notes = {self._version: version, f"{self._name}: late": self.late + report.late} | {self._of(number): epoch for number, _, _ in parts}  # fmt: skip
        self.table.advance(self._name, staged, after=after, epoch=epoch, notes=notes)
        self._waiting = waiting | ((self._waiting or set()) - {part[0] for part in parts})  # fmt: skip
        for number, before, _ in parts:
            if before is not None:
                self._state.remove(state_path(self.rules, number, before))
        return report

    def _parts(self, files: Iterable[File]) -> Iterator[_Part]:
        new: dict[int, list[File]] = {}
        for file in files:
            new.setdefault(0 if self._together else file.bucket, []).append(file)
        numbers = range(1 if self._together else self._history.layout.buckets)
        for number in numbers:
            saved = self.table.last_epoch(self._of(number))
            may_wait = saved is not None if self._waiting is None else number in self._waiting  # fmt: skip
            if number in new or may_wait:
                yield number, saved, new.get(number, [])

    def _of(self, number: int) -> str:
        return f"{self._name}: bucket {number}"

    def counted(self) -> pa.Table:
        """`KEY`, the sums of `COUNTED` since these rules were first given, and the first `step` of each."""
        rows: Any = self.table.read([*KEY, *COUNTED, "rules", "step"])
        hit = pc.greater(pc.add(rows["throttled_requests"], rows["rejected_requests"]), pa.scalar(0))  # fmt: skip
        rows = rows.filter(pc.and_(pc.equal(rows["rules"], pa.scalar(self.rules)), hit))
        sums: pa.Table = rows.group_by(list(KEY)).aggregate([*((name, "sum") for name in COUNTED), ("step", "min")])  # fmt: skip
        return sums.rename_columns([*KEY, *COUNTED, "step"])


def decided_by(folder: str, candidates: Sequence[Candidate]) -> pa.Table:
    """
    `RESULTS` of all that a stream has decided under these candidates.

    Raises:
        PipelineError: it has decided nothing under them, or there is no table.

    """
    rows: Any = Table.open(f"{folder.rstrip('/')}/shadow", None, SHADOW).read()
    rows = rows.filter(pc.equal(rows["rules"], pa.scalar(fingerprint(candidates))))
    if not len(rows):
        raise PipelineError(f"{folder}: `shadow stream` has decided nothing under these candidates; without --decided they are replayed")  # fmt: skip
    return results_since(rows)


def results_since(
    rows: Any,  # noqa: ANN401 - a table; its stubs know no mixed comparisons
    begin_ms: int = 0,
    end_ms: int | None = None,
    *,
    brokers: bool = False,
) -> pa.Table:
    """
    Add up rows of `SHADOW` as `RESULTS`, which a page of `whatif` draws.

    Args:
        rows: of one set of rules.
        begin_ms: of the steps after that, epoch ms.
        end_ms: and up to that.
        brokers: whether rows are by broker.

    """
    chosen = pc.greater(rows["timestamp"], pa.scalar(begin_ms))
    if end_ms is not None:
        chosen = pc.and_(chosen, pc.less_equal(rows["timestamp"], pa.scalar(end_ms)))
    rows = rows.filter(chosen).sort_by("timestamp")
    key = [name for name in KEY if brokers or name != "broker"]
    how = dict.fromkeys(_LARGEST, "max") | dict.fromkeys(_LAST, "last")
    others = [name for name in RESULTS.names if name not in (*KEY, _SHARE)]
    sums = rows.group_by(key, use_threads=False).aggregate([(name, how.get(name, "sum")) for name in others])  # fmt: skip
    columns: dict[str, Any] = {name: sums[name] for name in key}
    columns |= {name: sums[f"{name}_{how.get(name, 'sum')}"] for name in others}
    if not brokers:
        columns["broker"] = pa.nulls(len(sums), pa.string())
    active = pc.cast(columns["active_ms"], pa.float64())
    share = pc.divide(pc.cast(columns["muted_ms"], pa.float64()), pc.max_element_wise(active, 1.0))  # fmt: skip
    columns[_SHARE] = share
    table: Any = pa.table({name: columns[name] for name in RESULTS.names}).cast(RESULTS)
    charged: pa.Table = table.filter(pc.greater(table["requests"], pa.scalar(0)))
    return charged


def shadow_topic(  # noqa: PLR0913 - a source, a sink, and what lies between
    source: Mapping[str, str],
    into: str,
    checkpoint: str,
    options: IngestOptions,
    candidates: Sequence[Candidate],
    *,
    buckets: int,
    every: str | None,
    hold_ms: int,
    begun: Callable[[ShadowStream], None],
    done: Callable[[int, IngestReport, ShadowReport], None],
) -> None:
    """
    Read a topic of request logs into a folder as `ingest_topic` does, and take a step after each batch.

    A batch that was interrupted comes again: the tables know what they hold of it, and the step begins where the last one that was committed
    ended. With `every` None the last step waits for no earlier requests.

    Args:
        source: as in `ingest_topic`.
        into: as there.
        checkpoint: as there.
        options: as there.
        candidates: the shadows.
        buckets: as there.
        every: as there.
        hold_ms: how long requests wait for earlier ones.
        begun: called with the shadow before the first batch.
        done: called with the number of each batch, or -1 for the last step, and what became of it.

    Raises:
        PipelineError: as `ingest_topic`, and as `ShadowStream.step`.

    """
    run = run_of(Engine.SPARK, "shadow of buckets")
    shadow = ShadowStream(
        into, History.create(into, buckets), candidates, hold_ms=hold_ms
    )
    begun(shadow)

    def step(number: int, report: IngestReport) -> None:
        done(number, report, shadow.step(run))

    ingest_topic(source, into, checkpoint, options, buckets=buckets, every=every, done=step)  # fmt: skip
    done(-1, IngestReport(), shadow.step(run, all_of_it=True))
