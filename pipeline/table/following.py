"""Keeps a table up to date with what is appended to another one, each row exactly once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import pyarrow as pa

from .layout import File
from .table import Run, Table, run_here
from .writing import CHUNK_BYTES

Make: TypeAlias = Callable[[pa.Table], pa.Table]
"""Makes rows of the target from rows of the source, each from one, so that it does not matter how they are cut."""

CHUNK: Final = 1_000_000
"""Rows that are made into others at once, if they have no more than `CHUNK_BYTES`."""
PORTION: Final = 4_000_000
"""About as many rows of a bucket are one piece of work."""


@dataclass(frozen=True, kw_only=True)
class Follower:
    """A table with rows that are made of those of another one."""

    source: Table
    """What it is made of."""
    target: Table
    """What is made."""
    make: Make
    """How; sent to Spark's workers, so it must be a function of a module."""
    columns: Sequence[str] | None = None
    """What `make` needs of the source."""

    @property
    def batch_id(self) -> str:
        """Under which the target counts the source's commits."""
        return f"follows {self.source.identity}"

    def follow(self, run: Run = run_here) -> int:
        """
        Append what came to the source since last time; return how many rows were made.

        Args:
            run: where the work is done, a few files at a time.

        Raises:
            LostCommit: another process did the same meanwhile; nothing was added.
            NotWritten: no space, or no permission; nothing was added.
            MissingFile, DamagedFile, UnreachableTable: a file of the source is gone, is not as it was committed, or could not be read.

        """
        after = self.target.last_epoch(self.batch_id)
        version, files = self.source.added_since(after)
        if not files:
            return 0
        made = [file for few in run(self.stage, _portions(files)) for file in few]
        return self.target.advance(self.batch_id, made, after=after, epoch=version)

    def stage(self, files: Sequence[File]) -> list[File]:
        """Write what is made of files of the source, for those only who may read these: another run may have left them."""
        made = self.target.stage(self._made(files))
        for file in made:
            self.target.storage.restrict(file, files, of=self.source.storage)
        return made

    def _made(self, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        count = weight = 0
        for batch in chain.from_iterable(
            self.source.batches([file], self.columns) for file in files
        ):
            held.append(batch)
            count += batch.num_rows
            weight += batch.nbytes
            if count >= CHUNK or weight >= CHUNK_BYTES:
                yield from self.make(pa.Table.from_batches(held)).to_batches()
                held, count, weight = [], 0, 0
        if held:
            yield from self.make(pa.Table.from_batches(held)).to_batches()


def _portions(files: Sequence[File]) -> list[list[File]]:
    """Return files of one bucket together, but not more of them than give one worker enough to do."""
    portions: list[list[File]] = []
    rows = PORTION
    for file in sorted(files, key=lambda file: (file.bucket, file.name)):
        if rows >= PORTION or file.bucket != portions[-1][0].bucket:
            portions.append([])
            rows = 0
        portions[-1].append(file)
        rows += file.rows
    return portions
