"""
Spelling of names by Kafka and Java, against ours.

Any text that UTF-8 can carry is sanitized, quoted, and made a bean's name of as Kafka does, and read back as Java does.

Left out are escapes that no sanitizer writes, `%+a` and digits of other scripts, which Java reads by accident. Names
with patterns count as malformed: they name no bean.
"""

import re

from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject, nothing
from tests.differential.wire import quote

from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import mbean_name, parse_object_name, quote_tag_value, unquote_tag_value
from quotascope.metrics.kafka.sanitizer import desanitize, sanitize

LENIENT = re.compile(r"%(\+|.?[^\x00-\x7f])", re.DOTALL)
"""Escapes in which Java's decoder takes a sign or digits of other scripts for hexadecimal; we call them malformed."""
GROUPS = ("Produce", "Fetch", "Request", "ControllerMutation")


class NamesTwin(Twin):
    """Our functions behind the operations of `java/NamesSession.java`."""

    def _op_sanitize(self, text: str) -> str:
        return quote(sanitize(text))

    def _op_desanitize(self, text: str) -> str:
        try:
            return quote(desanitize(text))
        except MalformedName:
            return "malformed"

    def _op_jmx(self, text: str) -> str:
        return quote(quote_tag_value(text))

    def _op_unquote(self, text: str) -> str:
        try:
            return quote(unquote_tag_value(text))
        except MalformedName:
            return "malformed"

    def _op_mbean(self, prefix: str, group: str, *tags: str) -> str:
        return quote(mbean_name(prefix, group, list(zip(tags[::2], tags[1::2], strict=True))))

    def _op_parse(self, text: str) -> str:
        try:
            domain, properties = parse_object_name(text)
        except MalformedName:
            return "malformed"
        return " ".join(
            (
                quote(domain),
                *(f"{quote(key)}={quote(properties[key])}" for key in sorted(properties)),
            )
        )


def operation(choice: Choice, _shape: None) -> Operation:
    name = choice.of((choice.of(HOSTILE), choice.text()))
    match choice.of(("sanitize", "desanitize", "jmx", "unquote", "mbean", "parse")):
        case "unquote":
            return Operation("unquote", 0, (f'"{choice.of((name, quote_tag_value(name)[1:-1]))}"',))
        case "desanitize":
            text = choice.of((name, sanitize(name), f"%{name}"))
            return Operation("desanitize", 0, (sanitize(name) if LENIENT.search(text) else text,))
        case "mbean":
            return Operation(
                "mbean",
                0,
                (
                    "kafka.server",
                    choice.of(GROUPS),
                    "user",
                    sanitize(name),
                    "client-id",
                    name,
                ),
            )
        case "parse":
            return Operation("parse", 0, (_bean(choice, name),))
        case verb:
            return Operation(verb, 0, (name,))


def _bean(choice: Choice, name: str) -> str:
    """Return a name that is right, or nearly."""
    value = quote_tag_value(name)
    broken = value[: choice.integer(0, len(value))]
    client = choice.of((value, value, broken, name))
    return choice.of(("kafka.server", "", "a*")) + choice.of((
        f":type=Produce,user=u,client-id={client}",
        f":client-id={client},type=Produce",
        f":type={client}",
        f":type=Produce,{name}=x",
        f":{name}",
        f"{name}",
        ":type=Produce,type=Fetch",
        ":type=Produce,",
        ":",
    ))  # fmt: skip


SUBJECT = Subject(
    name="names",
    share=0.05,
    shape=nothing,
    opening=lambda _: "new names",
    twin=lambda _, __: NamesTwin(),
    operation=operation,
)
