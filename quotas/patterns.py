"""
Regular expressions that match in linear time.

Names come from untrusted clients. RE2, which Prometheus uses as well, takes time in proportion to the length of a name;
Python's own expressions can take exponential time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

Matches = Callable[[str], bool]

_MISSING: Final = "needs google-re2, which matches in linear time; in a clone of quotascope: pip install '.[patterns]'"


def matcher(pattern: str) -> Matches:
    """
    Return a function that returns whether a name matches a pattern as a whole, also one of several lines.

    Raises ``ValueError`` when the pattern is wrong, or the engine is not installed.
    """
    re2, options = _engine()
    try:
        expression = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise ValueError(f"{pattern!r} is not an RE2 expression: {reason}") from None

    def matches(name: str) -> bool:
        """Return whether a name matches as a whole."""
        return expression.fullmatch(_bytes(name)) is not None

    return matches


class PatternSet:
    """
    Many patterns, all of which are matched in one pass over a name.

    Raises ``ValueError`` as ``matcher`` does.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)
        self._set = self._compiled()
        """All patterns and one that matches every name, compiled as one; None where each is matched by itself."""

    def matching(self, name: str) -> Sequence[int]:
        """Return the places of the patterns that match a name as a whole, in no order."""
        if self._set is not None:
            places: list[int] = self._set.Match(_bytes(name))
            # the last pattern matches every name: without it, the engine ran out of memory, and reports no match at all
            if len(self._patterns) in places:
                return [place for place in places if place < len(self._patterns)]
        return [place for place, matches in enumerate(self._matchers) if matches(name)]

    def _compiled(self) -> Any:  # noqa: ANN401 - RE2 has no types
        """Return the set with a pattern more that matches all names; None where it would take too much memory."""
        if not self._patterns:
            return None
        re2, options = _engine()
        compiled = re2.Set.FullMatchSet(options)
        try:
            for pattern in (*self._patterns, ".*"):
                compiled.Add(pattern)
        except (re2.error, UnicodeEncodeError):
            _ = self._matchers  # raises an error that names the pattern
            raise
        try:
            compiled.Compile()
        except re2.error:
            return None
        return compiled

    @cached_property
    def _matchers(self) -> tuple[Matches, ...]:
        """Functions for the patterns one by one, in their order."""
        return tuple(map(matcher, self._patterns))


def _engine() -> tuple[Any, Any]:
    """Return RE2 and our options of it. Raises ``ValueError`` where it is not installed."""
    try:
        import re2  # noqa: PLC0415 - an extra
    except ImportError:
        raise ValueError(_MISSING) from None
    options = re2.Options()
    options.dot_nl = options.never_capture = True
    options.log_errors = False
    return re2, options


def _bytes(name: str) -> bytes:
    """
    Return a name as bytes of UTF-8, which spares RE2's binding the translation of positions.

    Half a surrogate pair, which UTF-8 does not have, becomes its escape, as people see the name.
    """
    return name.encode(errors="backslashreplace")
