import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.logs import Written, write_logs

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "tests/pipeline/captures/kafka-4.3.1-request.log.gz"
CROWD = Crowd(entities=100)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_logs(tmp_path_factory.mktemp("logs"), 20_000, CROWD, parts=4)


def texts(written: Written) -> list[str]:
    return [line for path in written.files for line in path.read_text().splitlines()]


def parsed(lines: list[str]) -> list[dict[str, Any]]:
    whole = [each for each in lines if each.endswith("} (kafka.request.logger)")]
    return [json.loads(each[each.index("{") : each.rindex("}") + 1]) for each in whole]


def shape(value: object) -> object:
    """Names and types, without values; of a list its first element."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


def test_as_reported(written: Written) -> None:
    """What was counted while writing is in the files, and no line is there twice: what distinguishes lines would take them for one."""
    lines = texts(written)
    requests = parsed(lines)
    assert written.lines == len(lines) == len(set(lines)) == 20_000 + written.forwarded
    assert written.broken == len(lines) - len(requests) > 0
    assert written.forwarded == sum(each["isForwarded"] for each in requests) > 0
    assert written.size == sum(path.stat().st_size for path in written.files)


@pytest.mark.slow
def test_lines_are_like_a_broker_s(written: Written) -> None:
    """Each kind of line has the fields, in their order, and the types that a real broker's has."""
    with gzip.open(CAPTURE, "rt") as file:
        real = {key(each): json.dumps(shape(each)) for each in parsed(file.read().splitlines())}
    made = {key(each): json.dumps(shape(each)) for each in parsed(texts(written))}
    assert len(made) == 8
    assert made == {each: real[each] for each in made}


def key(request: dict[str, Any]) -> tuple[object, ...]:
    """The kind of a request; an empty Fetch has a shape of its own."""
    header = request["requestHeader"]
    empty = request["response"].get("responses") == []
    return header["requestApiKeyName"], header["requestApiVersion"], request["isForwarded"], empty


def test_same_seed_same_log(tmp_path: Path, written: Written) -> None:
    """The same seed gives the same bytes, compressed or not; another seed gives others."""
    again = write_logs(tmp_path / "a", 20_000, CROWD, parts=4, compressed=True)
    other = write_logs(tmp_path / "b", 20_000, CROWD, parts=4, seed=8)
    assert gzip.decompress(again.files[2].read_bytes()) == written.files[2].read_bytes()
    assert other.files[2].read_bytes() != written.files[2].read_bytes()


def test_time_goes_on(written: Written) -> None:
    """The lines of each broker are in the order of their completion."""
    by_broker: dict[str, list[str]] = {}
    for path in written.files:
        times = [line[1:24] for line in path.read_text().splitlines()]
        by_broker.setdefault(path.parent.name, []).extend(times)
    assert len(by_broker) == 3
    assert all(times == sorted(times) for times in by_broker.values())
