"""Which MBeans a broker shows."""

import re

from .errors import InvalidConfig

_TOKEN = re.compile(r"\\.|\[\^?\]?|\]|\.|&&", re.DOTALL)
_DOT_ALL = re.compile(r"\(\?[a-z]*s")
_JAVA_DOT = r"[^\n\r\u0085\u2028\u2029]"


class JmxFilter:
    r"""
    Lets a name pass that matches the one expression as a whole and not the other (Kafka: `JmxReporter`).

    As in Java a dot matches no kind of line end, so that the default `.*` hides the MBean of a client with an id that
    holds a carriage return. Letters and digits are ASCII's. Java's `\p{…}`, `\Q…\E`, named groups and set
    operations are not understood.

    Args:
        include: config `metrics.jmx.include`.
        exclude: config `metrics.jmx.exclude`; empty for none.

    Raises:
        InvalidConfig: not a regular expression.

    """

    def __init__(self, include: str = ".*", exclude: str = "") -> None:
        self._include = _compiled("metrics.jmx.include", include)
        self._exclude = _compiled("metrics.jmx.exclude", exclude)

    def allows(self, name: str) -> bool:
        """Whether an MBean of this name is shown."""
        shown = self._include.fullmatch(name)
        return shown is not None and self._exclude.fullmatch(name) is None


def _compiled(key: str, expression: str) -> re.Pattern[str]:
    try:
        return re.compile(_as_java(expression), re.ASCII)
    except re.error as error:
        raise InvalidConfig(
            f"{key} is not a valid regular expression: {error}"
        ) from None


def _as_java(expression: str) -> str:
    """Replace the dots that stand for any character by what Java's dot matches without the flag s."""
    inside = False
    dot = "." if _DOT_ALL.search(expression) else _JAVA_DOT

    def translated(found: re.Match[str]) -> str:
        nonlocal inside
        token = found[0]
        if inside and token.startswith(("&&", "[")):
            raise InvalidConfig(
                f"operations on sets of characters are not understood: {expression!r}"
            )
        if token.startswith("["):
            inside = True
        elif token.startswith("]"):
            inside = False
        return dot if token.startswith(".") and not inside else token

    return _TOKEN.sub(translated, expression)
