"""User names as Kafka writes them into tags and sensor names."""

from urllib.parse import quote, unquote_plus

from .errors import MalformedName

_HEX = frozenset("0123456789abcdefABCDEF")


def sanitize(name: str) -> str:
    """
    Percent-encode all but ASCII letters, digits and `. _ -`, as UTF-8 (Kafka: `Sanitizer.sanitize`).

    A half of a surrogate pair, which no UTF-8 can hold, becomes `%3F`, a question mark, as in Java.
    """
    paired = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return quote(paired, safe="", encoding="utf-8", errors="replace").replace("~", "%7E")


def desanitize(text: str) -> str:
    """
    Undo `sanitize`; `+` is a space and invalid UTF-8 becomes U+FFFD (Kafka: `Sanitizer.desanitize`).

    Raises:
        MalformedName: a percent sign is not followed by two hexadecimal digits.

    """
    for escape in text.split("%")[1:]:
        if len(escape) < 2 or not _HEX.issuperset(escape[:2]):  # noqa: PLR2004 - two digits
            raise MalformedName(text, "a percent sign without two hexadecimal digits")
    return unquote_plus(text, encoding="utf-8", errors="replace")
