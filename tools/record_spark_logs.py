"""
Records small event logs of Spark: `python -m tools.record_spark_logs [version…]`.

A plain file, a compressed one, and a rolling one of each version go to tests/spark_listener/recorded/<version>/logs.
The machine's folders and properties are taken out; compressed logs keep the frames that Spark made, since it closes one
at each flush.
"""

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import zstandard
from tests.spark.logged import apart
from tests.spark.process import spark_process
from tests.spark.versions import VERSIONS
from tools.record_spark_events import TARGET, scrubbed

KINDS = {
    "plain": {"compress": "false", "rolling.enabled": "false"},
    "zstd": {"compress": "true", "rolling.enabled": "false"},
    "rolling": {"compress": "true", "rolling.enabled": "true"},
}
MACHINE = ("Hadoop Properties", "System Properties", "Classpath Entries")


def record(version: str) -> None:
    """Record a log of each kind, by one application after the other in the same driver."""
    with tempfile.TemporaryDirectory(prefix="recorder-") as name:
        place = Path(name)
        with spark_process(place, version=version) as driver:
            for kind, options in KINDS.items():
                conf = {f"spark.eventLog.{key}": options[key] for key in options}
                (place / kind).mkdir()
                driver.call(apart, str(place / kind), conf)
        target = TARGET / version / "logs"
        shutil.rmtree(target, ignore_errors=True)
        for kind in KINDS:
            shutil.copytree(place / kind, target / kind, ignore=checksums)
        for path in target.rglob("*"):
            if path.is_file() and path.stat().st_size:
                path.write_bytes(cleaned(path, place, version))


def checksums(_: str, names: list[str]) -> list[str]:
    """Return the names of Hadoop's checksum files beside the logs."""
    return [name for name in names if name.endswith(".crc")]


def cleaned(path: Path, place: Path, version: str) -> bytes:
    """Return the content of a log without this machine's names."""
    content = path.read_bytes()
    if path.suffix not in {".zstd", ".zst"}:
        return b"".join(without_machine(content, place, version))
    compressor = zstandard.ZstdCompressor(level=9)
    parts = [*frames(content)]
    whole = b"".join(parts)
    lines = [*without_machine(whole, place, version)]
    ends = [part.count(b"\n") for part in parts]
    if not all(part.endswith(b"\n") for part in parts):
        raise SystemExit(f"{path.name}: a frame ends within a line")
    packed = b""
    for end in ends:
        packed += compressor.compress(b"".join(lines[:end]))
        del lines[:end]
    return packed


def frames(content: bytes) -> Iterator[bytes]:
    """Yield the content of each frame."""
    while content:
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        yield unpacker.decompress(content)
        content = unpacker.unused_data


def without_machine(content: bytes, place: Path, version: str) -> Iterator[bytes]:
    """Yield the lines, each scrubbed; the environment loses the properties of the machine."""
    for line in io.StringIO(content.decode()):
        event = json.loads(line)
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            event |= {name: {} for name in MACHINE if name in event}
            line = json.dumps(event, separators=(",", ":")) + "\n"  # noqa: PLW2901
        yield scrubbed(line, place, version).encode()


def main(versions: list[str]) -> int:
    """Record the logs of these versions, or of all."""
    for version in versions or VERSIONS:
        record(version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
