"""The lines of a family: what stands before the values, and no series twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from .series import encodable

LineStart = Callable[[Sequence[str]], bytes]
"""Makes the start of a line of label values."""


def line_starts(family: str, labels: Sequence[str], cluster: str | None) -> LineStart:
    """
    Return what makes the start of a line of label values: the end of the line before, name and labels.

    Labels are sorted by name, as prometheus_client does.

    Args:
        family: Its name.
        labels: Their names, in the order in which values come.
        cluster: Value of the label ``cluster``, None for no such label.

    """
    fixed = {} if cluster is None else {"cluster": _escaped(cluster).replace("%", "%%")}
    places = {name: place for place, name in enumerate(labels)}
    names = sorted({*labels, *fixed})
    chosen = [places[name] for name in names if name not in fixed]
    in_order = itemgetter(*chosen) if chosen else _none
    pairs = ",".join(f'{name}="{fixed.get(name, "%s")}"' for name in names)
    template = f"\n{family}{{{pairs}}} " if names else f"\n{family} "

    def start(values: Sequence[str]) -> bytes:
        if not _is_plain("".join(values)):
            values = list(map(_escaped, values))
        return (template % in_order(values)).encode()

    return start


def distinct(lines: Iterable[bytes]) -> Sequence[bytes]:
    """Each series once: where it first comes, with its first value. Empty lines are left out."""
    first: dict[bytes, bytes] = {}
    for line in lines:
        if line:
            first.setdefault(line[: line.rindex(b" ")], line)
    return list(first.values())


def _none(_values: Sequence[str]) -> tuple[str, ...]:
    return ()


def _is_plain(text: str) -> bool:
    """Whether it is the same when escaped."""
    return text.isascii() and text.isprintable() and not ('"' in text or "\\" in text)


def _escaped(label: str) -> str:
    text = encodable(label).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace('"', '\\"')
