"""
Errors between a request log and a recommended quota.

::

    PipelineError
    ├── BadOption            an option about how to read logs that makes no sense
    ├── BadSnapshot          partitions by topic that cannot be read
    ├── UnknownBroker        requests of which the broker is not certain
    ├── BrokersMixed         a history in which the name of a broker stands for two
    ├── UnreadableLog        a request log that cannot be opened, or of which nothing can be read
    ├── MissingExtra         a library of the extra `pipeline` is not installed
    ├── SparkFailed          Spark could not finish the work, for a reason of its own
    ├── OtherTopic           the topic of request logs is there, but not as wanted
    ├── NoHistory            a folder that is not there, or holds no history
    ├── IncompleteRequests   requests that lack a value that the history needs
    ├── UnreadableMessage    a message of a request log that is not what its header says
    │   └── UnknownVersion   of a version that this release knows no schema of
    └── TableError           a committed table
        ├── NoTable          there is none at this place
        ├── UnreadableTable  its log is damaged, or of another program
        ├── UnreachableTable permission, credentials or the storage keep it from being read; nothing is damaged
        ├── OtherSchema      it has other columns than expected
        ├── ChangedRows      another program changed rows that other tables were made of
        ├── OtherSource      its rows were made of another table than the one it is to follow
        ├── MissingFile      one of its files is gone
        ├── DamagedFile      one of its files is not as it was committed
        ├── NotWritten       no space left, or no permission; nothing was committed
        └── LostCommit       another process committed first
"""

import os
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Final, TypeAlias

from quotascope.metrics.errors import QuotascopeError

Why: TypeAlias = Exception | str
"""An error of a library or of the operating system, which the message shows as `plain` does; or text of our own."""
_SPARK: Final = {"pyspark", "py4j"}
"""Packages of Spark's."""
_PUT_BACK: Final = "put it back from a copy, or let `quotascope history repair` say what is lost, and take it out"
_CLEANED: Final = (
    (r"\n +0: [\s\S]*", ""),
    (r"\x1b\[[0-9;]*m", ""),
    ("\u21b3", ":"),
    (r'\s*(?:Error: )?Os \{ code: \d+, kind: \w+, message: "([^"]*)" \}', r": \1"),
    (r" ?\(os error \d+\)", ""),
    (r"\[[Ee]rrno \d+\] ", ""),
    (r"(\bhttps?://[^\s?]+)\?\S*", r"\1"),
)
"""
Patterns that are removed from a message, and what replaces them.

deltalake colors its messages, writes causes on lines of their own, and shows errors of the operating system as Rust and
Python do. An address of an object store may end in a signature. With RUST_BACKTRACE a trace of Rust follows.
"""


def plain(why: Why) -> str:
    """Return the message of an error on one line, without parameters that sign an address; text of our own as it is."""
    if isinstance(why, str):
        return why
    text = str(why)
    for pattern, replacement in _CLEANED:
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())


def is_of_spark(error: BaseException | None) -> bool:
    """
    Return whether Spark's libraries raised an error because of Spark.

    Such an error is Spark's own, or that of a connection which broke when Spark ended.
    """
    if error is None:
        return False
    if type(error).__module__.partition(".")[0] in _SPARK:
        return True
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    raised_in = str(frames.tb_frame.f_globals.get("__name__")) if frames is not None else ""
    of_broken_connection = isinstance(error, OSError | EOFError | RuntimeError | AssertionError)
    is_raised_there = raised_in.partition(".")[0] in {*_SPARK, "socket"}
    return of_broken_connection and is_raised_there and _passes_spark(error.__traceback__)


def _passes_spark(frames: TracebackType | None) -> bool:
    """Return whether some frame of a traceback is of Spark's libraries."""
    while frames is not None:
        if str(frames.tb_frame.f_globals.get("__name__")).partition(".")[0] in _SPARK:
            return True
        frames = frames.tb_next
    return False


class PipelineError(QuotascopeError):
    """
    Something about logs, history, candidates or their replay went wrong.

    The message says what, where, and what to do.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return restored, (type(self), str(self), self.__dict__)


class BadOption(PipelineError):
    """An option about how to read logs that makes no sense; the message says which."""


class BadSnapshot(PipelineError):
    """A topic snapshot that is not JSON of topics and numbers of partitions."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f'{path}: {why}; a snapshot is JSON such as {{"orders": 12, "payments": 6}}')


class UnknownBroker(PipelineError):
    """
    Requests of which the broker is not certain: quotas are per broker, so no figure can be made of them.

    Args:
        why: text about what is not certain.
        seen: the addresses and what is known of them.
        advice: text about what to do.

    """

    def __init__(self, why: str, seen: Sequence[str], advice: str) -> None:
        listed = "".join(f"\n  {sighting}" for sighting in seen)
        super().__init__(f"{why}. Quotas are per broker, so nothing was added: {advice}{':' if seen else ''}{listed}")


class BrokersMixed(PipelineError):
    """
    A history in which the name of a broker stands for two, or for none.

    The message says by what that shows, and what to do.
    """


class UnreadableLog(PipelineError):
    """
    A request log that is missing, may not be read, or is broken in its compression.

    The message names it and the reason.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path: str = path
        self.why: str = why


class NoHistory(PipelineError):
    """A folder that is not there, or holds no usage history; the message says which, and what makes one."""

    def __init__(self, folder: str) -> None:
        problem = "no usage history is in it"
        if "://" not in folder and not os.path.isdir(folder):  # noqa: PTH112 - a Path raises where a name is too long
            # as above
            problem = "this is no folder" if os.path.exists(folder) else "there is no such folder"  # noqa: PTH110
        super().__init__(f"{folder}: {problem}; `quotascope ingest LOGS --into FOLDER` makes a history")


class IncompleteRequests(PipelineError):
    """Requests, as another program may have written them, that lack a value that the history needs."""

    def __init__(self, column: str, rows: int) -> None:
        have = "row has" if rows == 1 else "rows have"
        super().__init__(
            f"table requests: {rows:,} {have} no value in the column {column}, which "
            "the history needs in all rows; ingest writes it, so another program wrote these: complete or remove them"
        )


class UnreadableMessage(PipelineError):
    """
    A request or response in a line of the log that is not what its header says.

    The message names what is missing.
    """


class UnknownVersion(UnreadableMessage):
    """A request or response of a version that this release knows no schema of; the message names both versions."""


class TableError(PipelineError):
    """
    Something about a committed table.

    Args:
        table: its path or URI.
        about: text about what is wrong, and what to do.

    """

    def __init__(self, table: str, about: str) -> None:
        super().__init__(f"table {table}: {about}")
        self.table: str = table


class NoTable(TableError):
    """There is no table at this place; the message says what makes it."""

    def __init__(self, table: str, advice: str = "ingest a request log into it first") -> None:
        super().__init__(table, f"there is no table; {advice}")


class UnreachableTable(TableError):
    """
    Something of a table could not be read, and nothing says that it is damaged.

    Permission or credentials are missing, or a storage does not answer.

    Args:
        table: its path or URI.
        what: name of the part of the table.
        why: error of the storage.
        advice: text about what to do.

    """

    def __init__(self, table: str, what: str, why: Why, advice: str) -> None:
        super().__init__(table, f"{what} could not be read: {plain(why)}; {advice}")


class UnreadableTable(TableError):
    """The log of a table is damaged, or of another program."""

    def __init__(self, table: str, why: Why) -> None:
        super().__init__(table, f"its log (_delta_log) cannot be read: {plain(why)}")


class OtherSchema(TableError):
    """A table has other columns than what is to be written or read."""

    def __init__(self, table: str, differences: str) -> None:
        about = f"it has other columns than expected ({differences}); take another place for the new table"
        super().__init__(table, about)


class ChangedRows(TableError):
    """
    Another program changed or deleted some of the rows of a table: what was made of them cannot follow.

    Args:
        table: its path or URI.
        commit: the number of the commit, and its operation.

    """

    def __init__(self, table: str, commit: str) -> None:
        about = (
            f"its commit {commit} changed rows; `quotascope history repair` makes the tables again that are made of it"
        )
        super().__init__(table, about)


class OtherSource(TableError):
    """
    Tables have rows that were made of other tables than those that they are to follow.

    The followed tables could make the same rows count twice.

    Args:
        tables: their paths or URIs.
        source: table that the first one is to follow.

    """

    def __init__(self, tables: Sequence[str], source: str) -> None:
        super().__init__(
            tables[0],
            f"its rows were made of another table than {source}. Nothing was taken over, as the same rows could count "
            f"twice. Use another folder, or remove {', '.join(tables)}: the next run makes "
            f"{'them' if len(tables) > 1 else 'it'} of {source} alone",
        )


class MissingFile(TableError):
    """A file that a commit lists is not there."""

    def __init__(self, table: str, file: str) -> None:
        self.why: str = "it is gone"
        about = (
            f"its file {file} is gone; if the table was compacted and cleaned meanwhile, run this again, else "
            f"{_PUT_BACK}"
        )
        super().__init__(table, about)
        self.file: str = file


class DamagedFile(TableError):
    """
    A file that a commit lists was truncated, or is no Parquet.

    Its bytes could be read, and are not those that were committed.
    """

    def __init__(self, table: str, file: str, why: Why) -> None:
        self.why: str = plain(why)
        super().__init__(table, f"its file {file} is damaged: {self.why}; {_PUT_BACK}")
        self.file: str = file


class NotWritten(TableError):
    """
    A table could not be written to: no space, no permission.

    Readers see what was committed before, and nothing else.
    """

    def __init__(self, table: str, why: Why) -> None:
        super().__init__(table, f"nothing was committed: {plain(why)}")


class LostCommit(TableError):
    """Another process committed something that excludes this change; readers see that, and nothing of this."""

    def __init__(self, table: str, why: Why) -> None:
        super().__init__(table, f"another process changed it meanwhile; run this again ({plain(why)})")


class SparkFailed(PipelineError):
    """
    Spark could not finish the work.

    A worker was lost, or a library is missing there; the message has the first reason that Spark gives.
    """


class OtherTopic(PipelineError):
    """The topic is there with other numbers than were asked for; nothing was changed."""

    def __init__(self, topic: str, differences: str) -> None:
        super().__init__(
            f"topic {topic} is there with {differences}; nothing was changed. Leave the option out to take it as it "
            "is, or see kafka-topics.sh --alter"
        )
        self.topic: str = topic


def restored(kind: type[PipelineError], message: str, state: dict[str, object]) -> PipelineError:
    """Make an error of another process again, with all of its attributes."""
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class MissingExtra(PipelineError):
    """A library of the extra `pipeline` is not installed; the message says how to install it."""
