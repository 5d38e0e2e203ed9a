"""A calendar month in UTC, the period of a bill."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

_TEXT: Final = re.compile(r"([0-9]{4})-([0-9]{2})", re.ASCII)
_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_EARLIEST: Final = 1970
_LATEST: Final = 9_998


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month in UTC."""

    year: int
    number: int
    """From 1 for January to 12."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Return the month of a text such as `2026-11`. Raises ``ValueError``.

        >>> Month.parse("2026-11").hours, str(Month.parse("2024-02"))
        (720.0, '2024-02')
        """
        match = _TEXT.fullmatch(text)
        if match is None or not 1 <= int(match[2]) <= len(_NAMES) or not _EARLIEST <= int(match[1]) <= _LATEST:
            raise ValueError(f"{text[:60]!r} is not a month such as 2026-11")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def before(cls, now_s: float) -> Self:
        """Return the last month that had ended at a Unix time in seconds."""
        now = datetime.fromtimestamp(now_s, UTC)
        return cls(now.year, now.month - 1) if now.month > 1 else cls(now.year - 1, len(_NAMES))

    @property
    def begin(self) -> datetime:
        """The first moment of the month."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment of the next month."""
        last = self.number == len(_NAMES)
        return datetime(self.year + last, 1 if last else self.number + 1, 1, tzinfo=UTC)

    @property
    def span_s(self) -> tuple[float, float]:
        """Begin and end as Unix times in seconds."""
        return self.begin.timestamp(), self.end.timestamp()

    @property
    def hours(self) -> float:
        """Length in hours."""
        return (self.end - self.begin).total_seconds() / 3_600

    @property
    def name(self) -> str:
        """The month as readers write it, such as `November 2026`."""
        return f"{_NAMES[self.number - 1]} {self.year}"

    def __str__(self) -> str:
        """Return the month as it is parsed."""
        return f"{self.year}-{self.number:02}"
