"""
Regular expressions that match in linear time.

Names come from untrusted clients. RE2, which Prometheus uses as well, takes time in proportion to the length of a name;
Python's own expressions can take exponential time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Matches = Callable[[str], bool]

_MISSING: Final = "needs google-re2, which matches in linear time: pip install '.[patterns]' in a clone of quotascope"


def matcher(pattern: str) -> Matches:
    """
    Return whether a name matches as a whole, over lines as well.

    Raises ``ValueError`` when the pattern is wrong, or the engine is not installed.
    """
    try:
        import re2  # noqa: PLC0415 - an extra
    except ImportError:
        raise ValueError(_MISSING) from None
    options = re2.Options()
    options.dot_nl = options.never_capture = True
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise ValueError(f"{pattern!r} is not an RE2 expression: {reason}") from None

    def matches(name: str) -> bool:
        # bytes spare the translation of places; half a surrogate pair looks as it is shown
        text = name.encode(errors="backslashreplace")
        return expression.fullmatch(text) is not None

    return matches
