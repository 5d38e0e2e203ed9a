"""
Kafka's figures, vector by vector, as `make conformance` runs them.

A vector that should not pass does not, and the command says so.
"""

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.fields import Failure, Malformed, Unmet
from tests.conformance.suite import RUNNERS, Vector, load, run

from quotascope.metrics.kafka.release import KafkaRelease

ROOT = Path(__file__).parents[2]
VECTORS = load(Path(__file__).parent / "kafka-vectors.json")
RELEASES = (KafkaRelease(4, 3), KafkaRelease(4, 4))


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_vector(vector: Vector, release: KafkaRelease) -> None:
    """The engine answers every step of the vector as Kafka does in either release."""
    run(vector, release)


def test_none_is_lost() -> None:
    """The file has as many vectors of each kind as when it was taken over, each under a name of its own."""
    assert Counter(vector.kind for vector in VECTORS) == {
        **dict.fromkeys(RUNNERS, 1),
        **dict.fromkeys(("histogram_bins", "recording_level", "sanitize", "rlm_quota"), 2),
        **dict.fromkeys(("client_throttle_metrics", "admin_retry", "connection_ip_quota"), 2),
        **dict.fromkeys(("request_combination", "client_throttle"), 3),
        **dict.fromkeys(("registry", "throttle_formula", "controller_quota"), 4),
        "sensor": 6,
        "quota_manager": 14,
        "stat": 44,
    }
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)


def _vector(*steps: object, kind: str = "stat", **config: object) -> Vector:
    config = config or {"stat": "WindowedSum", "metric": {}}
    return Vector({"name": "v", "kind": kind, "config": config, "steps": list(steps)})


def _measured(value: object, expect: object, **more: object) -> Vector:
    """Return a vector about one recorded value that is read back."""
    return _vector(
        {"op": "record", "at_ms": 0, "value": value}, {"op": "measure", "at_ms": 0, "expect": expect, **more}
    )


@pytest.mark.parametrize(
    ("value", "expect", "more"),
    [
        (5, 5, {}),
        (5, 5 + 9e-10, {}),
        (5, 6, {"tol": 1}),
        (0.1, 0.1, {"tol": 0}),
        ("Infinity", "Infinity", {"tol": 0}),
        ("NaN", "NaN", {}),
        (5, 5, {"expect_min": 5, "expect_max": 5}),
        (5, 5, {"basis": "test", "basis_exact": "algorithm", "note": "fine"}),
    ],
)
def test_met(value: object, expect: object, more: dict[str, object]) -> None:
    """Numbers are equal within the tolerance, NaN equals NaN, and comments expect nothing."""
    run(_measured(value, expect, **more))


@pytest.mark.parametrize(
    ("value", "expect", "more"),
    [
        (5, 5 + 2e-9, {}),
        (0.1, math.nextafter(0.1, 1), {"tol": 0}),
        ("NaN", 5, {"tol": 1e9}),
        (5, "NaN", {"tol": 1e9}),
        ("NaN", "NaN", {"expect_min": 0}),
        ("Infinity", "-Infinity", {}),
        (5, 5, {"expect_min": 5.1}),
        (5, 5, {"expect_max": 4.9}),
    ],
)
def test_unmet(value: object, expect: object, more: dict[str, object]) -> None:
    """A number beside its tolerance or its limits fails the vector, and the failure says where."""
    with pytest.raises(Unmet, match=r"^step 2 \(measure\): "):
        run(_measured(value, expect, **more))


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        (Vector([]), "an object was expected"),
        (Vector({"name": "v"}), "the key 'kind' is missing"),
        (Vector({"name": "v", "kind": "stat", "config": {}}), "'steps' is missing"),
        (_vector(kind="nonsense"), "unknown kind 'nonsense'"),
        (_vector(stat="Nonsense"), "unknown statistic 'Nonsense'"),
        (_vector(stat="Rate", unit="WEEKS"), "'WEEKS' is none of"),
        (_vector(stat="Avg", typo=1), "config: unknown keys: 'typo'"),
        (_vector(stat="Avg", metric={"sample": 2}), "unknown keys: 'sample'"),
        (_vector(stat="Avg", metric={"samples": 0}), "config: InvalidConfig"),
        (_vector(stat="Rate", inner="Rate"), "unknown statistic 'Rate'"),
        (_vector({"op": "nonsense"}), "step 1 (nonsense): unknown operation"),
        (_vector({"at_ms": 1}), "the key 'op' is missing"),
        (_vector({"op": "record"}), "the key 'value' is missing"),
        (_vector({"op": "record", "value": "1"}), "a number was expected"),
        (_vector({"op": "record", "value": True}), "a number was expected"),
        (_vector({"op": "record", "value": 1, "at_ms": 0.5}), "a whole number"),
        (_vector({"op": "record", "value": 1, "at_ms": True}), "a whole number"),
        (_vector({"op": "record", "value": 1, "expect": 1}), "unknown keys: 'expect'"),
        (_vector({"op": "measure", "expects": 0}), "unknown keys: 'expects'"),
        (_vector({"op": "measure", "expect": True}), "a number was expected"),
        (_vector({"op": "window_size"}), "a WindowedSum has no window size"),
        (_vector("step"), "an object was expected"),
    ],
)
def test_malformed(vector: Vector, reason: str) -> None:
    """A vector that makes no sense fails with a reason, whatever is wrong with it."""
    with pytest.raises(Malformed) as caught:
        run(vector)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ({"op": "add", "sensor": "b", "metric": "m", "stat": "Avg"}, r"step 4 \(add\): the engine raised Duplicate"),
        ({"op": "sensor", "name": "a", "expect_error": "IllegalArgumentException"}, "a refusal, got none"),
    ],
)
def test_refusals_are_expected_and_happen(last: dict[str, object], found: str) -> None:
    """An unexpected refusal of the engine, or an expected one that does not happen, fails the vector."""
    sensors = [{"op": "sensor", "name": name} for name in "ab"]
    added = {"op": "add", "sensor": "a", "metric": "m", "stat": "Avg"}
    with pytest.raises(Unmet, match=found):
        run(_vector(*sensors, added, last, kind="registry", clock_origin_ms=0))


def test_times_count_from_the_origin_and_stay() -> None:
    """A step happens at the origin of the clock plus its own time, or at the time of the step before."""
    bucket = {"quota": {"bound": 1}, "samples": 1, "time_window_ms": 1000}
    steps = (
        {"op": "record", "at_ms": 500, "value": 1},
        {"op": "measure", "expect": 0},
        {"op": "measure", "at_ms": 700, "expect": 0.2},
    )
    run(_vector(*steps, stat="TokenBucket", metric=bucket, clock_origin_ms=10_000))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_every_expectation_is_looked_at(vector: Vector) -> None:
    """A vector fails when any single one of its expectations is changed."""
    value = json.loads(json.dumps(vector.value))
    for holder, key, other in list(_expectations(value["steps"])):
        expected, holder[key] = holder[key], other
        with pytest.raises(Failure):
            _run_in_both(Vector(value))
        holder[key] = expected


def _run_in_both(vector: Vector) -> None:
    for release in RELEASES:
        run(vector, release)


def _expectations(value: Any, key: str = "") -> Iterator[tuple[Any, Any, object]]:
    """Yield each expected figure: its container, its key, and another value for it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for inner, part in items:
        name = key or str(inner)
        if isinstance(part, dict | list):
            yield from _expectations(part, name if name.startswith("expect") else "")
        elif name.startswith("expect") and name != "expect_error":
            yield value, inner, _another(part, name)


def _another(expected: object, key: str) -> object:
    if key.endswith(("_min", "_max")):
        return "Infinity" if key.endswith("_min") else "-Infinity"
    if isinstance(expected, bool):
        return not expected
    if isinstance(expected, int | float):
        return expected * 2 + 17
    if expected is None:
        return {"metric": "other"}
    return 17 if expected == "NaN" else f"{expected}+"


def _command(path: Path) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "conformance.py", path], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_the_command_counts(tmp_path: Path) -> None:
    """The command prints the counts and the names of failed vectors, and its exit code says if any failed."""
    file = tmp_path / "vectors.json"
    good, bad = _measured(1, 1).value, _measured(1, 2).value
    file.write_text(json.dumps({"vectors": [good, bad, [], good]}))
    code, lines, _ = _command(file)
    assert code == 1
    assert lines[0].startswith("FAILED 'v' ('stat'): step 2 (measure): expect 2")
    assert lines[-1] == "2 passed, 2 failed"
    file.write_text(json.dumps({"vectors": [good, good]}))
    assert _command(file) == (0, ["2 passed, 0 failed"], "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[]", 'an array "vectors"'),
        ("{}", 'an array "vectors"'),
        ('{"vectors": 1}', 'an array "vectors"'),
        ("[" * 100_000, "not JSON"),
        (None, "No such file"),
    ],
    ids=range(6),
)
def test_a_vectors_file_is_needed(tmp_path: Path, content: str | None, reason: str) -> None:
    """A file without vectors is an error of its path."""
    file = tmp_path / "vectors.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Malformed, match=f"{file}: .*{reason}"):
        load(file)


def test_the_command_needs_a_vectors_file() -> None:
    """A missing vectors file is an error of one line, and neither a traceback nor a success."""
    code, lines, error = _command(Path("/nonexistent"))
    assert (code, lines) == (2, [])
    assert error == "conformance: /nonexistent: No such file or directory\n"
