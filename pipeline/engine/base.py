"""The interface of engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ..columns import GroupKey
from ..ingest import IngestOptions, IngestReport
from ..table import Progress, Table

if TYPE_CHECKING:
    from ..blame.summing import Plan, Requests, Sums

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Engine(ABC):
    """
    An engine; the results of all are the same.

    Work, items and answers may be sent between processes, and an error of the work is raised as the work raises it.
    `progress` is called with the amount of done work, and of all.
    """

    @abstractmethod
    def map(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterable[Answer]:
        """Return the answers of the work on each item, in the order of the items."""

    @abstractmethod
    def grouped(
        self,
        table: Table,
        columns: Sequence[str],
        key: GroupKey,
        work: Callable[[pa.Table], Answer],
        doing: str,
        progress: Progress | None = None,
    ) -> Iterable[Answer]:
        """
        Return the answers of the work on the rows of a table, in which all rows of a group are together.

        Args:
            table: the table, of which all rows are read.
            columns: columns that the work needs, those of the key among them.
            key: key of the groups.
            work: takes all rows of one or more groups, in any order. Texts may be dictionaries of 32 bits, and there
                may be further columns.
            doing: name of the work.
            progress: see the class.

        """

    @abstractmethod
    def waits(self, requests: Requests, threads: int | None, progress: Progress | None = None) -> tuple[Plan, Sums]:
        """
        Divide the waits of requests; return the plan as well.

        `threads` is `num.io.threads` of each broker, or None for an estimate. Raises what `Requests.plan` raises.
        """

    @abstractmethod
    def ingest(
        self, paths: Sequence[str], into: str, options: IngestOptions, *, shards: int, progress: Progress
    ) -> IngestReport:
        """
        Read request logs into the tables of requests of a folder. Without a line no table is made.

        Args:
            paths: files and folders that the engine can read.
            into: the folder, as the engine sees it.
            options: options for reading the logs.
            shards: number of shards that users are spread over, if the tables are new.
            progress: see the class.

        Raises:
            PipelineError: a log or table cannot be read or written; earlier commits stay.

        """
