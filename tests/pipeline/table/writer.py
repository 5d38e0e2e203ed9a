"""
A process that appends to a table until it is killed.

::

    python -m tests.pipeline.table.writer TABLE

It says `committed N` after each batch, and `staged N` when the files of the next are written and nothing of them is committed.
"""

import sys

from tests.pipeline.table.rows import LAYOUT, SCHEMA, batch

from quotascope.pipeline.table import Table


def main(path: str) -> None:
    """Append batch 0, 1, 2 … for ever."""
    table = Table.create(path, SCHEMA, LAYOUT)
    number = 0
    while True:
        files = table.stage(batch(number))
        _say(f"staged {number}")
        table.advance(f"batch {number}", files, after=None, epoch=0)
        _say(f"committed {number}")
        number += 1


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
