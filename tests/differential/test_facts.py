"""The recorded facts about Kafka's releases are what their classes say."""

import json

import pytest
from tests.differential.bytecode import HANDLERS, exemption, strict_since
from tests.differential.kafka import JARS, Kafka
from tests.differential.operation import Operation
from tests.facts.kafka import path_of

pytestmark = [pytest.mark.java, pytest.mark.interpreted]


def test_facts(kafka: Kafka, pytestconfig: pytest.Config) -> None:
    """APIs, errors, keys, levels, and what is exempt: all as in the jars of the release."""
    kafka.send(["new facts", Operation("facts", 0).line()])
    found = json.loads(kafka.receive()[1])
    libs = JARS[str(kafka.release)]()
    found["exempt"] = {role: exemption(libs, role) for role in HANDLERS}
    found["strict_since"] = strict_since(libs)
    path = path_of(kafka.release)
    if pytestconfig.getoption("--update-golden"):
        text = json.dumps(found, indent=1, sort_keys=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == found
