"""Names of MBeans."""

import json
from collections.abc import Iterator

from tests.exporter.recorded import CAPTURES
from tests.fuzz.target import Target
from tests.strategies import HOSTILE

from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import mbean_name, parse_object_name, quote_tag_value, unquote_tag_value


def _read(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    assert unquote_tag_value(quote_tag_value(text)) == text
    domain, properties = parse_object_name(text)
    assert properties
    written = ",".join(f"{key}={quote_tag_value(value)}" for key, value in properties.items())
    assert parse_object_name(f"{domain}:{written}") == (domain, properties)


def _seeds() -> Iterator[bytes]:
    for path in sorted(CAPTURES.glob("*/*.jolokia2.json")):
        for response in json.loads(path.read_bytes()).values():
            for name in response.get("value") or ():
                yield name.encode()
    for name in HOSTILE[:-1]:
        tags = [("user", name), ("client-id", name)]
        yield mbean_name("kafka.server", "Produce", tags).encode()


TARGET = Target(
    name="bean_name",
    read=_read,
    refuses=(MalformedName,),
    seeds=_seeds,
    words=(
        b"kafka.server:", b"type=", b',client-id="', b'\\"', b"\\*", b"\\\\", b"\\n",
    )
)  # fmt: skip
