"""Request logs of several brokers in parts, deterministic by seed."""

import gzip
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.pipeline.crowd import Crowd, Floats, Integers
from benchmarks.pipeline.request_lines import Call, create_topic, delete_topic, fetch, heartbeat, produce

START_MS: Final = 1_767_571_200_000
"""Monday, 5 January 2026, midnight UTC."""
BROKERS: Final = 3
LINES_A_SECOND: Final = 5_000
"""Lines of one broker in a second."""
BLOCK: Final = 50_000
"""Lines that are drawn at once."""
KINDS: Final = (produce, fetch, heartbeat, create_topic, delete_topic)
MIX: Final = (0.83, 0.155, 0.013, 0.001, 0.001)
THROTTLED: Final = 0.01
BROKEN: Final = 1e-4
"""Share of lines that end in their middle, as when a disk was full."""
_TOPICS: Final = 500
_TOPIC_ID: Final = b"Wk9NhLhFQ7usRy9J_K8T%02d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Files, and their content."""

    lines: int
    size: int
    """Bytes, before compression."""
    forwarded: int
    """Lines of requests that a broker forwarded to the controller, as the controller logged them."""
    broken: int
    files: tuple[Path, ...]


@dataclass(slots=True)
class _Tally:
    lines: int = 0
    size: int = 0
    forwarded: int = 0
    broken: int = 0
    files: list[Path] = field(default_factory=list)

    def add(self, piece: bytes, kind: int, *, broken: bool) -> None:
        self.size += len(piece)
        self.lines += piece.count(b"\n")
        self.forwarded += not broken and kind > KINDS.index(heartbeat)
        self.broken += broken


def write_logs(
    folder: Path, requests: int, crowd: Crowd, *, parts: int = 16, compressed: bool = False, seed: int = 7
) -> Written:
    """
    Write so many requests as `folder/broker-<id>/request.log.<part>`, gzipped or not; some are logged in two lines.

    The brokers take turns with the parts, and each one's time goes on from part to part.
    """
    tally = _Tally()
    for part in range(parts):
        count = requests * (part + 1) // parts - requests * part // parts
        broker, turn = part % BROKERS + 1, part // BROKERS
        first_number = turn * -(-requests // parts)
        path = folder / f"broker-{broker}" / f"request.log.{part:04d}"
        random = np.random.default_rng([seed, part])
        _write_part(path, _pieces(crowd, broker, first_number, count, random), tally, compressed)
    return Written(
        lines=tally.lines, size=tally.size, forwarded=tally.forwarded, broken=tally.broken, files=tuple(tally.files)
    )


def _write_part(
    path: Path,
    pieces: Iterator[tuple[bytes, int, bool]],
    tally: _Tally,
    compressed: bool,  # noqa: FBT001 - of no use by itself
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if compressed:
        path = path.with_name(path.name + ".gz")
    with closing(_opened(path)) as file:
        for piece, kind, broken in pieces:
            file.write(piece)
            tally.add(piece, kind, broken=broken)
    tally.files.append(path)


def _opened(path: Path) -> BufferedIOBase:
    return gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb")


def _pieces(
    crowd: Crowd, broker: int, first_number: int, count: int, random: np.random.Generator
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield one request's line or lines, its kind, and whether it breaks off."""
    for offset in range(0, count, BLOCK):
        size = min(BLOCK, count - offset)
        kinds = random.choice(len(KINDS), size, p=MIX).tolist()
        broken = (random.random(size) < BROKEN).tolist()
        calls = _calls(crowd, broker, first_number + offset, size, random)
        for call, kind, breaks in zip(calls, kinds, broken, strict=True):
            line = KINDS[kind](_with_topic(call, kind))
            yield (line[: len(line) // 3] + b"\n" if breaks else line), kind, breaks


def _with_topic(call: Call, kind: int) -> Call:
    """Fetch names a topic by its id; a new topic has a few partitions, not so many as a Produce has bytes."""
    if KINDS[kind] is fetch:
        return call._replace(topic=_TOPIC_ID % (call.correlation_id % 100))
    if KINDS[kind] in {create_topic, delete_topic}:
        number = call.correlation_id // 2_000
        return call._replace(topic=b"made-%d" % number, size=1 + number % 12)
    return call


def _calls(crowd: Crowd, broker: int, first_number: int, size: int, random: np.random.Generator) -> Iterator[Call]:
    ranks = crowd.draw(size, random)
    numbers = np.arange(first_number, first_number + size)
    columns: tuple[list[Any], ...] = (
        *_completed(numbers),
        numbers.tolist(),
        [b"10.0.0.%d" % broker] * size,
        *_clients(crowd, ranks),
        [b"topic-%03d" % number for number in (ranks % _TOPICS).tolist()],
        random.integers(0, 3, size).tolist(),
        random.lognormal(7.0, 1.2, size).astype(np.int64).tolist(),
        _throttles(size, random),
        *_times(size, random),
    )
    return map(Call._make, zip(*columns, strict=True))


def _completed(numbers: Integers) -> tuple[list[bytes], list[int]]:
    """Moments of so many lines a second."""
    times_ms = START_MS + numbers * 1000 // LINES_A_SECOND
    seconds, where = np.unique(times_ms // 1000, return_inverse=True)
    texts = [datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S").encode() for second in seconds.tolist()]
    return [texts[index] for index in where.tolist()], (times_ms % 1000).tolist()


def _clients(crowd: Crowd, ranks: Integers) -> tuple[list[bytes], ...]:
    """Address, user and client id; the rank itself is cut in two, for a port is not as wide."""
    rank_list = ranks.tolist()
    return (
        [b"10.1.%d.%d:%d" % (n % 250, n // 250 % 250, 30_000 + n % 30_000) for n in rank_list],
        [crowd.user(rank).encode() for rank in rank_list],
        [crowd.client_id(rank).encode() for rank in rank_list],
    )


def _throttles(size: int, random: np.random.Generator) -> list[int]:
    throttled = random.random(size) < THROTTLED
    return np.where(throttled, random.integers(1, 1_500, size), 0).tolist()  # type: ignore[no-any-return]


def _times(size: int, random: np.random.Generator) -> list[list[float]]:
    """Queue, local, remote, response queue and send time, in ms."""
    middles = (0.08, 0.11, 0.03, 0.06, 0.05)
    drawn: list[Floats] = [random.lognormal(np.log(middle), 0.9, size) for middle in middles]
    return [sizes.tolist() for sizes in drawn]
