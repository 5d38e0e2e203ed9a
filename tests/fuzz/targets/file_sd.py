"""Files of targets as Prometheus's file_sd_configs has them, up to the URLs that are asked."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.fuzz.target import Target

from quotascope.exporter.discovery.files import parse
from quotascope.exporter.discovery.target import target_of

_URL = "http://{target}/jolokia?port={port}"
_JSON = b"["
"""An input that begins so is taken for JSON, as Prometheus writes it."""


def _read(data: bytes) -> None:
    name = "x.json" if data.startswith(_JSON) else "x.yml"
    for entry in parse(name, data.decode()):
        address = entry.address
        values = {"target": str(address), "host": address.host, "port": address.port}
        url = urlsplit(target_of(_URL, values).url)
        assert (url.scheme, url.path) == ("http", "/jolokia")
        assert url.query == f"port={address.port}"
        assert url.username is None
        assert url.port == int(address.port)


def _seeds() -> Iterator[bytes]:
    yield b'[{"targets": ["a:1", "b:2"], "labels": {"job": "kafka"}}, {"targets": ["[::1]:9404"]}]'
    yield b"- targets: [a:1, 'b:2']\n  labels: {job: kafka, node_id: '1'}\n- targets:\n  - 10.0.0.1:9404\n"


TARGET = Target(
    name="file_sd",
    read=_read,
    refuses=(ValueError,),
    seeds=_seeds,
    words=(
        b"- targets: ", b"labels:", b'"targets": [', b'"labels": {', b"!!timestamp ", b"!!int ",
        b"!!float ", b"!!set ", b"<<: ", b"? ", b"[::1]:1", b"@",
    )
)  # fmt: skip
