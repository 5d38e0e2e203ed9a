"""The grammar of MBean names, as Kafka's JMX reporter writes them."""

import re
from collections.abc import Iterable, Mapping

from .errors import MalformedName

Tags = Mapping[str, str] | Iterable[tuple[str, str]]
"""Ordered tag keys and values; the order shapes MBean names."""

_PLAIN = re.compile(r"[A-Za-z0-9_\-%. \t]*")
_SPECIAL = re.compile(r'["\\*?\n]')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PROPERTY = re.compile(r'([^,=:*?\n]+)=("(?:[^"\\*?\n]|\\["\\*?n])*"|[^,=:"*?\n]*)((?<=").|,|\Z)', re.DOTALL)
"""Key, value, and what ends the value: a comma, or any sign behind quotes, as in Java's `ObjectName`."""


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
    properties = [f",{key}={quote_tag_value(value)}" for key, value in dict(tags).items() if key and value]
    return f"{prefix}:type={group}{''.join(properties)}"


def parse_object_name(text: str) -> tuple[str, dict[str, str]]:
    """
    Return the domain and the properties of an MBean's name, values unquoted, keys in any order.

    >>> parse_object_name('kafka.server:client-id="a:b",type=Produce')
    ('kafka.server', {'client-id': 'a:b', 'type': 'Produce'})

    Raises:
        MalformedName: the text names no single MBean (Java: `ObjectName`): no domain, an empty, repeated or
            unterminated property, or a pattern.

    """
    domain, colon, property_text = text.partition(":")
    if not colon or set(domain) & set("*?\n"):
        raise MalformedName(text, "not an MBean name")
    properties: dict[str, str] = {}
    position = 0
    has_more = True
    while has_more:
        match = _PROPERTY.match(property_text, position)
        if match is None or match[1] in properties:
            raise MalformedName(text, "not an MBean name")
        properties[match[1]] = unquote_tag_value(match[2])
        position = match.end()
        has_more = match[3] != ""
    return domain, properties


def _escaped(match: re.Match[str]) -> str:
    return r"\n" if match[0] == "\n" else "\\" + match[0]


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
