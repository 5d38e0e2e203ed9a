"""
What can go wrong between a request log and a recommended quota.

::

    PipelineError
    ├── BadOption            an option about how to read logs that makes no sense
    ├── BadSnapshot          partitions by topic that cannot be read
    ├── UnreadableLog        a request log that cannot be opened, or of which nothing can be read
    ├── MissingExtra         a library of the extra `pipeline` is not installed
    ├── FileNotWritten       a file that a command writes
    ├── SparkFailed          Spark could not finish the work, for a reason of its own
    ├── OtherTopic           the topic of request logs is there, but not as wanted
    ├── NoHistory            a folder that is not there, or holds no history
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
from typing import Final, TypeAlias

Why: TypeAlias = Exception | str
"""An error of a library or of the operating system, which the message has as `plain` leaves it; or text of our own."""
_CLEANED: Final = (
    (r"\x1b\[[0-9;]*m", ""),
    ("\u21b3", ":"),
    (r'\s*(?:Error: )?Os \{ code: \d+, kind: \w+, message: "([^"]*)" \}', r": \1"),
    (r" ?\(os error \d+\)", ""),
    (r"\[[Ee]rrno \d+\] ", ""),
    (r"(\bhttps?://[^\s?]+)\?\S*", r"\1"),
)
"""
What a message is cleaned of, and what stays.

deltalake colors its messages, writes causes on lines of their own, and shows errors of the operating system as Rust and Python do. An address
of an object store may end in a signature.
"""


def plain(why: Why) -> str:
    """The message of an error on one line, without what signs an address; text of our own as it is."""
    if isinstance(why, str):
        return why
    text = str(why)
    for found, meaning in _CLEANED:
        text = re.sub(found, meaning, text)
    return " ".join(text.split())


class PipelineError(Exception):
    """Something about logs, history, candidates or their replay went wrong; the message says what, where, and what to do."""

    def __reduce__(self) -> tuple[object, ...]:
        return restored, (type(self), str(self), self.__dict__)


class BadOption(PipelineError):
    """An option about how to read logs that makes no sense; the message says which."""


class BadSnapshot(PipelineError):
    """A topic snapshot that is not JSON of topics and numbers of partitions."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f'{path}: {why}; a snapshot is JSON such as {{"orders": 12, "payments": 6}}')


class UnreadableLog(PipelineError):
    """A request log that is missing, may not be read, or is broken in its compression; the message names it and the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path: str = path
        self.why: str = why


class NoHistory(PipelineError):
    """A folder that is not there, or holds no usage history; the message says which, and what makes one."""

    def __init__(self, folder: str) -> None:
        what = "no usage history is in it"
        if "://" not in folder and not os.path.isdir(folder):  # noqa: PTH112 - a Path raises where a name is too long
            what = "this is no folder" if os.path.exists(folder) else "there is no such folder"  # noqa: PTH110 - as above
        super().__init__(f"{folder}: {what}; `quotascope ingest LOGS --into FOLDER` makes a history")


class UnreadableMessage(PipelineError):
    """A request or response in a line of the log that is not what its header says; the message names what is missing."""


class UnknownVersion(UnreadableMessage):
    """A request or response of a version that this release knows no schema of; the message names both versions."""


class TableError(PipelineError):
    """
    Something about a committed table.

    Args:
        table: its path or URI.
        about: what is wrong and what to do.

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
    Something of a table could not be read, and nothing says that it is damaged: permission, credentials, or a storage that does not answer.

    Args:
        table: its path or URI.
        what: which part of it.
        why: what the storage said.
        advice: what to do.

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
        about = f"its commit {commit} changed rows; delete the tables that are made of it (history, seconds), and run this again"
        super().__init__(table, about)


class OtherSource(TableError):
    """
    Tables have rows that were made of other tables than those that they are to follow: with the rows of these, rows could count twice.

    Args:
        tables: their paths or URIs.
        source: what the first one is to follow.

    """

    def __init__(self, tables: Sequence[str], source: str) -> None:
        super().__init__(
            tables[0],
            f"its rows were made of another table than {source}. Nothing was taken over, as the same rows could count twice. "
            f"Use another folder, or remove {', '.join(tables)}: the next run makes {'them' if len(tables) > 1 else 'it'} of {source} alone",
        )


class MissingFile(TableError):
    """A file that a commit lists is not there."""

    def __init__(self, table: str, file: str) -> None:
        about = (
            f"its file {file} is gone; if the table was compacted and cleaned meanwhile, run this again, "
            "else put it back from a copy, or drop the table's day and ingest its logs into a new table"
        )
        super().__init__(table, about)
        self.file: str = file


class DamagedFile(TableError):
    """A file that a commit lists was truncated, or is no Parquet: its bytes could be read, and are not those that were committed."""

    def __init__(self, table: str, file: str, why: Why) -> None:
        about = f"its file {file} is damaged: {plain(why)}; put it back from a copy, or drop the table's day and ingest its logs into a new table"
        super().__init__(table, about)
        self.file: str = file


class NotWritten(TableError):
    """A table could not be written to: no space, no permission; readers see what was committed before, and nothing else."""

    def __init__(self, table: str, why: Why) -> None:
        super().__init__(table, f"nothing was committed: {plain(why)}")


class LostCommit(TableError):
    """Another process committed something that excludes this change; readers see that, and nothing of this."""

    def __init__(self, table: str, why: Why) -> None:
        super().__init__(table, f"another process changed it meanwhile; run this again ({plain(why)})")


class FileNotWritten(PipelineError):
    """A file that a command writes, such as a page or a CSV, cannot be written; the message names it."""


class SparkFailed(PipelineError):
    """Spark could not finish the work: a worker was lost, or a library is missing there; the message has the first reason that Spark gives."""


class OtherTopic(PipelineError):
    """The topic is there with other numbers than were asked for; nothing was changed."""

    def __init__(self, topic: str, differences: str) -> None:
        super().__init__(
            f"topic {topic} is there with {differences}; nothing was changed. Leave the option out to take it as it is, or see kafka-topics.sh --alter"
        )
        self.topic: str = topic


def restored(kind: type[PipelineError], message: str, state: dict[str, object]) -> PipelineError:
    """Make an error again that another process raised, whatever it was made of."""
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class MissingExtra(PipelineError):
    """A library of the extra `pipeline` is not installed; the message says how to install it."""
