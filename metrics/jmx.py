"""The grammar of MBean names, as Kafka's JMX reporter writes them."""

import re

from .config import Tags
from .errors import MalformedName

_PLAIN = re.compile(r"[A-Za-z0-9_\-%. \t]*")
_SPECIAL = re.compile(r'["\\*?\n]')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PROPERTY = re.compile(r'([^,=:*?\n]+)=("(?:[^"\\*?\n]|\\["\\*?n])*"|[^,=:"*?\n]*)(,|\Z)')


def quote_tag_value(value: str) -> str:
    r"""
    Return a tag's value as it stands in an MBean name (Kafka: `Sanitizer.jmxSanitize`).

    Plain values stay as they are. Others are quoted (Java: `ObjectName.quote`):

    >>> print(quote_tag_value("a:b*"))
    "a:b\*"
    """
    if _PLAIN.fullmatch(value):
        return value
    return '"' + _SPECIAL.sub(_escaped, value) + '"'


def unquote_tag_value(text: str) -> str:
    r"""
    Undo `quote_tag_value`: what is not quoted stays as it is.

    >>> unquote_tag_value(r'"a:b\*"')
    'a:b*'

    Raises:
        MalformedName: a quoted text that `ObjectName.quote` would not have written.

    """
    if not text.startswith('"'):
        return text
    if not re.fullmatch(r'"(?:[^"\\*?\n]|\\["\\*?n])*"', text):
        raise MalformedName(text, "a badly quoted value")
    return _ESCAPE.sub(_unescaped, text[1:-1])


def mbean_name(prefix: str, group: str, tags: Tags = ()) -> str:
    """
    Return `<prefix>:type=<group>,<tag>=<value>…` in the order of the tags (Kafka: `JmxReporter.getMBeanName`).

    Tags with an empty key or value are left out.

    >>> mbean_name("kafka.server", "Produce", [("user", ""), ("client-id", "a")])
    'kafka.server:type=Produce,client-id=a'
    """
    shown = [f",{key}={quote_tag_value(value)}" for key, value in dict(tags).items() if key and value]
    return f"{prefix}:type={group}{''.join(shown)}"


def parse_object_name(text: str) -> tuple[str, dict[str, str]]:
    """
    Return the domain and the properties of an MBean's name, values unquoted, keys in any order.

    >>> parse_object_name('kafka.server:client-id="a:b",type=Produce')
    ('kafka.server', {'client-id': 'a:b', 'type': 'Produce'})

    Raises:
        MalformedName: the text names no single MBean (Java: `ObjectName`): no domain, an empty, repeated or
            unterminated property, or a pattern.

    """
    domain, colon, rest = text.partition(":")
    if not colon or set(domain) & set("*?\n"):
        raise MalformedName(text, "not an MBean name")
    properties: dict[str, str] = {}
    position = 0
    more = True
    while more:
        found = _PROPERTY.match(rest, position)
        if found is None or found[1] in properties:
            raise MalformedName(text, "not an MBean name")
        properties[found[1]] = unquote_tag_value(found[2])
        position = found.end()
        more = found[3] == ","
    return domain, properties


def _escaped(found: re.Match[str]) -> str:
    return r"\n" if found[0] == "\n" else "\\" + found[0]


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
