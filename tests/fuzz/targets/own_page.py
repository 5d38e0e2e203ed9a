"""The page of an exporter, as `quotascope top --exporter` reads it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.exporter.recorded import CAPTURES, TAKEN_AT
from tests.fuzz.target import Target

from quotascope.exporter.errors import SourceError
from quotascope.exporter.own_page.snapshot import snapshot_of_page

_GOLDEN = CAPTURES.parent / "exposition" / "golden"
_SERIES_OF_A_SEED = 60
_US = b'quotascope_build_info{version="1",python="3"} 1.0\n'


def _read(data: bytes) -> None:
    repr(snapshot_of_page(data, TAKEN_AT))


def _seeds() -> Iterator[bytes]:
    for path in sorted(_GOLDEN.glob("*_throttled.txt")):
        lines = [line for line in path.read_bytes().split(b"\n") if line[:1] != b"#"]
        for start in range(0, len(lines), _SERIES_OF_A_SEED):
            yield _US + b"\n".join(lines[start : start + _SERIES_OF_A_SEED]) + b"\n"


TARGET = Target(
    name="own_page",
    read=_read,
    refuses=(SourceError,),
    seeds=_seeds,
    words=(
        _US,
        b'quota_type="produce"',
        b'level="user"',
        b'broker="',
        b'user="',
        b'client_id="',
        b"NaN",
        b"+Inf",
        b"1e308",
        b"-1",
    ),
)
