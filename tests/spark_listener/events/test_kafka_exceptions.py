"""The causes of Kafka's exceptions, against the classes of Kafka's own jars."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.builders.spark_events import java_failure
from tests.provisioning import cache

from quotascope.spark_listener.events import FailureCause, classify

LISTED = Path(__file__).with_name("kafka_exceptions.json")
ERRORS = "org/apache/kafka/common/errors/"
TIMEOUT, QUOTA = f"{ERRORS}TimeoutException", f"{ERRORS}ThrottlingQuotaExceededException"
SHADES = ["", "kafkashaded.", "shaded.", "com.example.repackaged.", "org.apache.flink.kafka.shaded."]
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of entries of a class file's constant pool, by tag (Java Virtual Machine Specification, 4.4)."""


def name_and_parent(data: bytes) -> tuple[str, str]:
    """Return the name of a class file and that of its superclass, with slashes."""
    (count,) = struct.unpack_from(">H", data, 8)
    offset, number, texts, classes = 10, 1, {}, {}
    while number < count:
        tag = data[offset]
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, offset + 1)
            texts[number] = data[offset + 3 : offset + 3 + size].decode(errors="replace")
            offset += 3 + size
        else:
            if tag == 7:
                (classes[number],) = struct.unpack_from(">H", data, offset + 1)
            offset += 1 + _SIZES[tag]
        number += 2 if tag in (5, 6) else 1
    _, this, parent = struct.unpack_from(">HHH", data, offset)
    return texts[classes[this]], texts[classes[parent]] if parent else ""


def exceptions(jar: Path) -> Iterator[tuple[str, str]]:
    """Yield the throwables of a jar of kafka-clients, with the cause that their superclasses show."""
    with zipfile.ZipFile(jar) as archive:
        names = [
            name for name in archive.namelist() if name.endswith(".class") and name.startswith("org/apache/kafka/")
        ]
        parents = dict(name_and_parent(archive.read(name)) for name in names)
    for name in parents:
        line = [name]
        while line[-1] in parents:
            line.append(parents[line[-1]])
        if line[-1] in (
            "java/lang/RuntimeException",
            "java/lang/Exception",
            "java/lang/Error",
            "java/io/IOException",
        ) or (line[-1].startswith("java/") and line[-1].endswith(("Exception", "Error"))):
            cause = "kafka_quota" if QUOTA in line else "kafka_timeout" if TIMEOUT in line else "kafka_other"
            yield name.replace("/", "."), cause


def jars() -> Mapping[str, Path]:
    """Return the jars of kafka-clients by version: those of the brokers that tests start."""
    paths = {
        path.stem.removeprefix("kafka-clients-"): path for path in cache().glob("kafka-*/libs/kafka-clients-*.jar")
    }
    return dict(sorted(paths.items()))


@pytest.mark.parametrize("shade", SHADES)
def test_causes_of_kafkas_exceptions(shade: str) -> None:
    """Each class of each version has the cause that its superclasses show. Vendors and jobs may rename the packages."""
    listed = json.loads(LISTED.read_text())
    assert len(listed) > 200
    assert {"kafka_quota", "kafka_timeout", "kafka_other"} == set(listed.values())
    for name, cause in listed.items():
        failure = classify(java_failure(f"{shade}{name}: said\n\tat a.B.c(B.java:1)\n"))
        assert failure is not None
        assert failure.cause is FailureCause(cause), name
        assert failure.chain == (f"{shade}{name}",)


@pytest.mark.java
def test_list_is_that_of_the_jars() -> None:
    """The list has the exceptions of every version of the clients that is here, old and new, and the cause of each."""
    listed = json.loads(LISTED.read_text())
    versions = jars()
    assert len(versions) >= 2
    for version, jar in versions.items():
        for name, cause in exceptions(jar):
            assert listed.get(name) == cause, (version, name)


if __name__ == "__main__":
    causes = dict(sorted({name: cause for jar in jars().values() for name, cause in exceptions(jar)}.items()))
    LISTED.write_text(json.dumps(causes, indent=1) + "\n")
