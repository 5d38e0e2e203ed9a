"""What one dialect of Prometheus text is: how an agent calls what it reads from a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from ...beans import BeanColumn


class LineBeginnings:
    """
    Looks for lines that begin with one of some texts.

    In a pattern whose alternatives begin alike, that is what a page is searched for first, a hundred times as fast.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        ordered = sorted(texts)
        self._patterns = [
            re.compile("|".join(re.escape(f"\n{text}") for text in alike))
            for _, alike in groupby(ordered, key=lambda text: text[0])
        ]

    def are_in(self, page: str) -> bool:
        """Whether there is such a line in a page, which begins with a line end."""
        return any(pattern.search(page) for pattern in self._patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDialect:
    """
    How one kind of agent, or of rules for it, names and labels the attributes of MBeans.

    A new dialect is one file with such a value, and its place in ``DIALECTS``.
    """

    name: str
    """The label ``dialect``, and what forces it in a configuration."""
    marks: tuple[str, ...]
    """Beginnings of lines; a page with a line that begins so is in this dialect."""
    not_beside: tuple[str, ...] = ()
    """Beginnings of lines; a page with a line that begins so is not in this dialect."""
    prefixes: tuple[str, ...]
    """Beginnings of all lines of interest; the others are not read."""
    column_of: Callable[[str, Mapping[str, str]], BeanColumn | None]
    """The column of a sample by its name and labels, None when it is of no use."""
    factor_of: Callable[[BeanColumn], float] | None = None
    """What a number of the page is to be multiplied by to be Kafka's; None when all are."""
    advice: str
    """What to check when there are quotas, but no series of any entity."""
    _marks: LineBeginnings = field(init=False, repr=False, compare=False)
    _not_beside: LineBeginnings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the search."""
        object.__setattr__(self, "_marks", LineBeginnings(self.marks))
        object.__setattr__(self, "_not_beside", LineBeginnings(self.not_beside))

    def is_in(self, page: str) -> bool:
        """Whether a page, which begins with a line end, shows it."""
        return self._marks.are_in(page) and not self._not_beside.are_in(page)
