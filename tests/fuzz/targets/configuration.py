"""The configuration file, up to the checked configuration."""

import re
from collections.abc import Iterator

from tests.fuzz.target import Target

from quotascope.exporter.config.file import parse_document
from quotascope.exporter.config.load import build_config
from quotascope.exporter.config.reference import reference
from quotascope.exporter.errors import ConfigError

_SUBJECT = "fuzz.yaml"
_ENVIRON = {"NAME": "value", "QUOTASCOPE_LOG__LEVEL": "debug"}


def _read(data: bytes) -> None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    document = parse_document(text, _SUBJECT, _ENVIRON)
    config = build_config(document, _SUBJECT, _ENVIRON)
    assert config.log.level.value == "debug", "the environment goes before the file"
    repr(config)


def _seeds() -> Iterator[bytes]:
    plain = re.sub(r"(?m)^ *# .*\n|^\n", "", reference())
    yield plain.encode()
    everything = re.sub(r"(?m)^( *)#", r"\1", plain)
    for section in re.split(r"(?m)^(?=[a-z])", everything):
        yield section.encode()
    yield b"sources:\n- &a {url: http://a:1/jolokia, timeout_seconds: 5s}\n- {<<: *a, name: '${NAME}'}\n"
    yield (
        b'cluster: "$${NAME}"\nsources: [{url: "http://[::1]:1/", node_id: 1, basic_auth: {username: u, password: '
        b'"${NO}"}}]\n'
    )


TARGET = Target(
    name="configuration",
    read=_read,
    refuses=(ConfigError,),
    seeds=_seeds,
    words=(
        b"sources:", b"server:", b"kafka:", b"cardinality:", b"${NAME}", b"<<: *a", b"&a ", b"*a",
        b"!!int ", b"!!float ", b"!!bool ", b"!!timestamp ", b"!!binary ", b"!!null ", b"!!set ",
        b"2001-01-01", b"? ", b"- ", b".inf",
    )
)  # fmt: skip
