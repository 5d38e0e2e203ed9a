"""
Records of Kafka's releases are what their classes say.

Facts, and conformance vectors whose answers differ between releases.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.suite import load
from tests.differential.bytecode import HANDLERS, exemption, strict_since
from tests.differential.comparison import Operation
from tests.differential.kafka import CURRENT, JARS, Kafka
from tests.differential.wire import Word
from tests.facts.kafka import path_of

from quotascope.metrics.kafka.release import KAFKA_4_4

pytestmark = pytest.mark.java
FILE = Path(__file__).parents[1] / "conformance" / "kafka-vectors.json"


def steps_of(kafka: Kafka, kind: str) -> Iterator[tuple[Any, list[Any]]]:
    """Yield config and steps of each vector of a kind, with a release's expectations."""
    for vector in load(FILE):
        assert isinstance(vector.value, dict)
        if vector.kind == kind:
            newer = "since_4_4" if kafka.release >= KAFKA_4_4 else ""
            steps = vector.value["steps"]
            yield (
                vector.value["config"],
                [{**step, **step.get(newer, {})} for step in steps],
            )


def answers(kafka: Kafka, opening: str, operations: list[Operation]) -> list[str]:
    kafka.send([opening, *(operation.line() for operation in operations)])
    return kafka.receive()[1:]


def test_differences_are_in_these_kinds_only() -> None:
    """Vectors of kinds that are tested neither here nor in tests/facts expect the same of each release."""
    kinds = {
        vector.kind for vector in load(FILE) if isinstance(vector.value, dict) and "since_4_4" in str(vector.value)
    }
    assert kinds == {"quota_manager", "should_client_throttle", "quota_validation"}


def test_throttle_times(kafka: Kafka) -> None:
    """Throttle times that a vector expects of a byte rate are those of the release, beyond 32 bits as well."""
    compared = 0
    for config, steps in steps_of(kafka, "quota_manager"):
        if not any("since_4_4" in step for step in steps):
            continue
        windows = f"{config['samples']} {config['window_s']}"
        operations: list[Operation] = []
        expected: list[str | None] = []
        at_ms = 0
        for step in steps:
            passed_ms, at_ms = step["at_ms"] - at_ms, step["at_ms"]
            if step["op"] == "update_quota":
                entity_and_bound = (None, Word("*"), float(step["bound"]))
                update = (Word("producer_byte_rate"), *entity_and_bound)
                operations.append(Operation("update", passed_ms, update))
                expected.append(None)
            else:
                record = (Word("Produce"), step["user"], step["client_id"], step["value"])
                operations.append(Operation("record", passed_ms, record))
                expected.append(str(step["expect_throttle_ms"]))
        actual = answers(kafka, f"new managers 0 {windows} 11 1", operations)
        for answer, wanted_answer in zip(actual, expected, strict=True):
            assert wanted_answer in (None, answer)
            compared += wanted_answer is not None
    assert compared == 3


@pytest.mark.parametrize("kafka", CURRENT, indirect=True)
def test_stored_quotas(kafka: Kafka) -> None:
    """A controller of the release refuses exactly the quotas that the vector says."""
    ((_, steps),) = steps_of(kafka, "quota_validation")
    operations = []
    for step in steps:
        names = [part for pair in step["entity"].items() for part in pair]
        operations.append(Operation("alter", 0, (len(step["entity"]), *names, step["key"], float(step["value"]))))
    expected = ["0" if step["expect"] == "NONE" else "42" for step in steps]
    assert answers(kafka, "new validation", operations) == expected


@pytest.mark.interpreted
@pytest.mark.parametrize("kafka", CURRENT, indirect=True)
def test_facts(kafka: Kafka, pytestconfig: pytest.Config) -> None:
    """APIs, errors, keys, levels and exempt requests are those in the jars of the release."""
    facts = json.loads(answers(kafka, "new facts", [Operation("facts", 0)])[0])
    libs = JARS[kafka.release.version]()
    facts["exempt"] = {role: exemption(libs, role) for role in HANDLERS}
    facts["strict_since"] = strict_since(libs)
    path = path_of(kafka.release)
    if pytestconfig.getoption("--update-golden"):
        text = json.dumps(facts, indent=1, sort_keys=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == facts
