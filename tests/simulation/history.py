"""
A usage history under fire: commands that are killed or overtaken at any point of their writes, and damage in between.

All runs in one process and one thread. Where a command writes (`POINTS`) the seed decides whether it is killed, or
other commands come first.
A killed command does nothing more, not even what it does after an error; its sign of life stays. What must hold:

- a command ends as it should, or with an error of the pipeline that says why
- after each command all tables can be read, and have no row twice, and none that is in no log
- without damage, one more ingest of all logs succeeds, and then every row is there, in each table, once
- with damage, what is read without an error is what was there before; after a repair and one more ingest the same holds

A seed opens about 400 Delta tables, each by a replay of its log in delta-rs: about 40 % of the time of a seed, and more
than a thousand seeds a minute on one core would have. The rest is Parquet: reading what steps have changed, and writing
small files.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow.compute as pc
import pytest
from tests.builders.requests import line

from quotascope.pipeline.errors import NoHistory, NoTable, PipelineError, TableError
from quotascope.pipeline.history import store
from quotascope.pipeline.history.charges import ROLLUP_COLUMNS, rollup
from quotascope.pipeline.history.repair import repair
from quotascope.pipeline.ingest import IngestOptions, ingest, local
from quotascope.pipeline.names import DETAIL
from quotascope.pipeline.table import Table, TableLayout, follow, kept, log, writers
from quotascope.pipeline.table.storage import Storage

NAMED: Final = IngestOptions(broker="1")
FIRST: Final = date(2026, 11, 20)
LOGS: Final = 3
LINES: Final = 6
STEPS: Final = 8
DAMAGES: Final = 12
"""At most as many are tried one after the other; all but the last are undone."""
KILLED: Final = 0.006
"""How likely a command is killed at one point of its writes."""
OVERTAKEN: Final = 0.006
"""How likely other commands come first there."""
POINTS: Final[list[tuple[Any, str]]] = [
    (Storage, "write"),
    (Storage, "remove"),
    (log, "commit"),
    (kept, "keep"),
    (kept, "_write"),
    (writers, "_sign"),
    (Table, "advance"),
]
"""Functions that write, before and after which a command may be killed."""


class Killed(BaseException):
    """The process is gone."""


class Broken(AssertionError):
    """An invariant that does not hold; the message has the seed and the steps."""


class Simulation:
    """
    A folder, its logs, and what a seed does to them.

    Args:
        seed: what happens.
        folder: empty; for the history and the logs.

    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.random = seed, Random(seed)  # noqa: S311 - repeats
        self.into = str(folder / "usage")
        self.done: list[str] = []
        """What was done, for the message of what does not hold."""
        self.logs: list[Path] = []
        self.identities: Counter[int] = Counter()
        """Correlation ids of all logs."""
        for number in range(LOGS):
            ids = range(number * LINES, (number + 1) * LINES)
            path = folder / f"{number}.log"
            path.write_bytes(
                b"".join(line(header={"correlationId": number}, time=_time(number)) + b"\n" for number in ids)
            )
            self.logs.append(path)
            self.identities.update(ids)
        self.dropped_before: date | None = None
        self.damaged = False
        self._whole: dict[str, Any] | None = None
        """All rows of all tables before the first damage, which is undone before the next."""
        self._checked: dict[tuple[str, int], Counter[int]] = {}
        """Rows by table and version, which do not change."""
        self._undo: tuple[Path, bytes] | None = None
        """The file that was damaged last, and what was in it."""
        self._alive = [True]
        """Of the command that runs, and of those that wait because it overtook them."""

    def run(self) -> None:
        """Do all of it. Raises `Broken`."""
        with self._points():
            for _ in range(STEPS):
                self._command(self.random.choice([self._ingest, self._compact, self._clean] * 3 + [self._drop]))
                self._check_rows()
        for _ in range(self.random.randrange(DAMAGES)):
            self._damage()
        self._end()

    def _command(self, command: Callable[[], object]) -> None:
        """Run a command, which may be killed, or end with an error that says why."""
        self.done.append(command.__name__)
        self._alive.append(True)
        try:
            command()
        except Killed:
            self.done.append(f"{command.__name__} was killed")
        except PipelineError as error:
            self.done.append(f"{command.__name__}: {error}")
        except Exception as error:
            raise self._broken(f"{command.__name__} raised {error!r}") from error
        finally:
            self._alive.pop()

    def _ingest(self) -> None:
        some = self.random.sample(self.logs, self.random.randint(1, LOGS))
        self._take(some)

    def _take(self, logs: Sequence[Path]) -> None:
        """Do what `ingest_logs` does, for the tables that are made of each other: the others follow in the same way."""
        ingest([str(path) for path in logs], self.into, NAMED)
        layout = TableLayout(shard_of="user", shards=1)
        charges, sums = (store.MADE[name] for name in ("history", "seconds"))
        history, seconds = (
            Table.create(f"{self.into}/{name}", made.schema, replace(layout, day_of=day_of))
            for name, made, day_of in (("history", charges, "timestamp"), ("seconds", sums, "start"))
        )
        requests = store.tables_of(self.into)["requests"]
        follow(requests, [charges.follower(history, [sums.follower(seconds)])])

    def _compact(self) -> None:
        for table in store.tables_of(self.into).values():
            table.compact()

    def _clean(self) -> None:
        store.clean(self.into, 0)

    def _drop(self) -> None:
        before = FIRST + timedelta(days=1)
        tables = store.tables_of(self.into)
        self.dropped_before = before
        for name in DETAIL:
            if name in tables:
                tables[name].drop_before(before)

    @contextmanager
    def _points(self) -> Iterator[None]:
        """Let the seed decide what happens where commands write."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local, "CHUNK", 4)
            for owner, name in POINTS:
                patch.setattr(owner, name, self._pointed(getattr(owner, name)))
            yield

    def _pointed(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def pointed(*arguments: Any, **more: Any) -> Any:
            self._point()
            result = write(*arguments, **more)
            self._point()
            return result

        return pointed

    def _point(self) -> None:
        if len(self._alive) == 1:
            return  # a check, and no command
        if not self._alive[-1]:
            raise Killed
        chance = self.random.random()
        if chance < KILLED:
            self._alive[-1] = False
            raise Killed
        if chance < KILLED + OVERTAKEN and len(self._alive) < 4:
            self._command(self.random.choice([self._ingest, self._compact, self._clean, self._drop]))

    def _check_rows(self) -> None:
        """Every table can be read, and nothing is there twice, or in no log."""
        try:
            rows = self._rows()
        except PipelineError as error:
            raise self._broken(f"without damage, {error}") from error
        for name, ids in rows.items():
            if ids - self.identities:
                raise self._broken(f"{name} has rows twice: {ids - self.identities}")

    def _rows(self) -> dict[str, Counter[int]]:
        """Return the requests of the tables that have one row for each."""
        rows: dict[str, Counter[int]] = {}
        try:
            tables = store.tables_of(self.into)
        except NoHistory:
            return rows
        for name in ("requests", "history"):
            if name in tables:
                key = name, tables[name].version
                if key not in self._checked:
                    column = "correlation_id" if name == "requests" else "timestamp"
                    values: list[Any] = tables[name].read([column])[column].to_pylist()
                    self._checked[key] = Counter(values if name == "requests" else map(_id_of, values))
                rows[name] = self._checked[key]
        return rows

    def _damage(self) -> None:
        """Damage a part of the folder; a read without an error must give the former rows."""
        if self._undo is not None:
            path, whole = self._undo
            path.write_bytes(whole)
        else:
            with suppress(NoHistory, TableError):
                # as the next command that writes does, of what a killed one committed
                for table in store.tables_of(self.into).values():
                    kept.keep(table.storage, table.version)
            self._whole = self._figures()
        before = self._whole
        places = [
            path
            for path in Path(self.into).rglob("*")
            if path.is_file()
            and (path.suffix == ".parquet" or path.parent.name == "_delta_log")
            and path.stat().st_size
        ]
        if before is None or not places:
            return
        last = [
            max(folder.glob("_delta_log/*.json"))
            for folder in Path(self.into).iterdir()
            if any(folder.glob("_delta_log/*.json"))
        ]
        path = self.random.choice(self.random.choice([sorted(places), sorted(last)]))
        kind = self.random.choice(["flip", "flip", "flip", "empty", "cut", "lose"])
        self.done.append(f"{kind} {path.relative_to(self.into)}")
        self._undo = path, path.read_bytes()
        content = bytearray(self._undo[1])
        if kind == "flip":
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        if kind == "lose":
            path.unlink()
        else:
            path.write_bytes(b"" if kind == "empty" else content[: len(content) // 2] if kind == "cut" else content)
        self.damaged = True
        after = self._figures()
        if after is not None and after != before:
            changed = {
                name: [len(rows), len(after.get(name, ()))] for name, rows in before.items() if after.get(name) != rows
            }
            raise self._broken(f"figures changed in silence, rows from and to: {changed}")

    def _figures(self) -> dict[str, Any] | None:
        """Return all rows of all tables; None where an error says that something is wrong."""
        try:
            tables = store.tables_of(self.into)
            return {name: sorted(map(repr, table.read().to_pylist())) for name, table in tables.items()}
        except (NoHistory, NoTable):
            return {}
        except TableError as error:
            self.done.append(str(error))
            return None

    def _end(self) -> None:
        """After a repair if something was damaged, and one more ingest, every row is there once."""
        self._checked.clear()  # a damaged log may get another version of the same number
        try:
            if self.damaged:
                self.done += [f"repair: {finding.table}: {finding.what}" for finding in repair(self.into, write=True)]
            self._take(self.logs)
            left = list(repair(self.into, write=False))
        except Exception as error:
            raise self._broken(f"the end raised {error!r}") from error
        if left:
            raise self._broken(f"something is lost after the end: {left}")
        rows = self._rows()
        for name in ("requests", "history"):
            missing = self.identities - rows[name]
            if self.dropped_before is not None:  # dropped days may be there or not, as an ingest ran beside
                missing = Counter(
                    {identity: n for identity, n in missing.items() if _day(identity) >= self.dropped_before}
                )
            if missing or rows[name] - self.identities:
                raise self._broken(f"{name}: {missing} missing, {rows[name] - self.identities} twice")
        seconds = store.tables_of(self.into)["seconds"].read(["requests", "quota_type"])
        history = store.tables_of(self.into)["history"]
        counted = pc.sum(seconds["requests"]).as_py()
        charged = pc.sum(rollup(history.read(ROLLUP_COLUMNS))["requests"]).as_py()
        if self.dropped_before is None and counted != charged:
            raise self._broken(f"seconds have {counted} requests, history {charged}")

    def _broken(self, what: str) -> Broken:
        steps = "\n  ".join(self.done)
        return Broken(f"seed {self.seed}: {what}\n  {steps}")


def _day(number: int) -> date:
    return FIRST + timedelta(days=number % 3)


def _time(number: int) -> str:
    return f"{_day(number)} 08:00:{number:02},000"


def _id_of(time_ms: int) -> int:
    """Return the correlation id of a row of history, which has the time of its line only: seconds of the minute."""
    return (time_ms + 500) // 1_000 % 60


def simulate(seed: int, folder: Path) -> None:
    """Do what a seed says in an empty folder, and remove that. Raises `Broken`."""
    folder.mkdir(parents=True)
    try:
        Simulation(seed, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
