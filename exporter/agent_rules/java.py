r"""
Java's regular expressions, as jmx_exporter uses them, in Python's.

Both read almost all rules for Kafka alike. What differs is translated: ``.`` stops at six kinds of line ends, ``\w``,
``\d`` and ``\s`` are ASCII, named groups are ``(?<name>…)``. What has no counterpart is refused, so that no answer is
guessed.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import ConfigError

_DOT: Final = r"[^\n\r\x85\u2028\u2029]"
_TOKEN: Final = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\\p\{(?P<posix>\w+)\}|\\(?P<escape>.)|\(\?(?P<named><(?![=!]))"
    r"|\(\?(?P<flags>[idmsuxU-]+)(?P<end>[:)])"
    r"|(?P<open>\[\^?\]?)|(?P<dot>\.)",
    re.DOTALL,
)
_IN_CLASS: Final = re.compile(r"\\p\{(?P<posix>\w+)\}|\\(?P<escape>.)|(?P<close>\])|(?P<union>\[|&&)", re.DOTALL)
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "Space": r" \t\n\x0b\f\r",
    "Blank": r" \t",
    "XDigit": "0-9a-fA-F",
}
_ESCAPES: Final = {"h": r"[ \t]", "z": r"\Z", "Z": r"(?=\n?\Z)", "e": r"\x1b"}
_UNKNOWN_ESCAPES: Final = frozenset("cGHNRvVXPp0xu")
"""Escapes that Python has not, or reads otherwise."""
_REFERENCE: Final = re.compile(
    r"\\(?P<plain>.)|\$(?:(?P<number>[0-9]+)|\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\})|(?P<wrong>\$|\\\Z)", re.DOTALL
)


def compiled(pattern: str) -> re.Pattern[str]:
    """
    Return the pattern of a rule, which an agent finds anywhere in the text of an attribute: ``^.*(?:PATTERN).*$``.

    Raises ``ConfigError`` when Java has such a pattern and Python none, or when it is no pattern at all.
    """
    text = _translated(pattern)
    try:
        return re.compile(f"{_DOT}*(?:{text}){_DOT}*", re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, re.error) else str(error)
        raise ConfigError("pattern", [f"{pattern!r} is no regular expression: {reason}"]) from None


def _translated(pattern: str) -> str:
    """Return the pattern in Python's spelling. Raises ``ConfigError`` for a part without a counterpart."""
    parts: list[str] = []
    position = 0
    end = ""
    while match := _TOKEN.search(pattern, position):
        parts.append(pattern[position : match.start()])
        position = match.end()
        if match["open"]:
            inside, position = _rest_of_class(pattern, position)
            parts.append(f"{match['open']}{inside}")
        elif match["flags"] and match["end"] == ")":
            if match.start() > 0:
                raise _unknown(pattern, match[0])
            parts.append(f"(?{match['flags']}:")  # the flags of the whole pattern
            end = ")"
        else:
            parts.append(_token(pattern, match))
    return "".join([*parts, pattern[position:], end])


def _token(pattern: str, match: re.Match[str]) -> str:
    """Return the next part of the pattern, anything but a character class, in Python's spelling."""
    if match["literal"] is not None:
        return re.escape(match["literal"])
    if match["posix"]:
        return f"[{_posix(pattern, match['posix'])}]"
    if match["escape"]:
        return _escaped(pattern, match["escape"])
    if match["named"]:
        return "(?P<"
    return _DOT if match["dot"] else match[0]


def _rest_of_class(pattern: str, position: int) -> tuple[str, int]:
    """Return the rest of a character class in Python's spelling, and the position after it."""
    parts: list[str] = []
    while match := _IN_CLASS.search(pattern, position):
        parts.append(pattern[position : match.start()])
        position = match.end()
        if match["close"]:
            return "".join([*parts, "]"]), position
        if match["union"]:
            raise _unknown(pattern, match[0])
        parts.append(_posix(pattern, match["posix"]) if match["posix"] else f"\\{match['escape']}")
    raise ConfigError("pattern", [f"{pattern!r} is no regular expression: a character class without its end"])


def _posix(pattern: str, name: str) -> str:
    """Return the characters of a class such as ``Alpha``, to stand within brackets."""
    if name not in _POSIX:
        raise _unknown(pattern, f"\\p{{{name}}}")
    return _POSIX[name]


def _escaped(pattern: str, char: str) -> str:
    r"""Return an escape such as ``\d`` in Python's spelling."""
    if char in _UNKNOWN_ESCAPES:
        raise _unknown(pattern, f"\\{char}")
    return _ESCAPES.get(char, f"\\{char}")


def _unknown(pattern: str, part: str) -> ConfigError:
    """Return the error of a part of a pattern that Python has no counterpart for."""
    return ConfigError("pattern", [f"{pattern!r}: {part} of Java's regular expressions cannot be checked"])


def expanded(template: str, match: re.Match[str]) -> str:
    """
    Return a template such as ``kafka_server_$1`` with the groups of a match (Java: ``Matcher.replaceAll``).

    Raises ``ConfigError`` when it names a group that there is not: the agent's scrapes fail then.
    """

    def part(reference: re.Match[str]) -> str:
        if reference["plain"] is not None:
            return reference["plain"]
        try:
            if reference["name"]:
                return match[reference["name"]] or ""
            if reference["number"]:
                return _group(reference["number"], match)
        except IndexError:
            raise ConfigError("template", [f"{template!r} has {reference[0]}, but the pattern no such group"]) from None
        raise ConfigError("template", [f"{template!r}: a dollar sign or backslash at its end means nothing"])

    return _REFERENCE.sub(part, template)


def _group(digits: str, match: re.Match[str]) -> str:
    """Return the group with the longest number that exists, and the remaining digits as they are."""
    group_count = match.re.groups
    size = 1
    while size < len(digits) and int(digits[: size + 1]) <= group_count:
        size += 1
    return (match[int(digits[:size])] or "") + digits[size:]
