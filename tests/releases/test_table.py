"""The table of docs/start/dialects.md is made of what the tests of each release found."""

import ast
import json
from pathlib import Path

import pytest
from tests.cluster import provision
from tests.releases import matrix
from tests.releases.conftest import wanted
from tests.releases.observed import RELEASES
from tools.releases_table import FEATURES, RESULTS, with_table

from quotascope.exporter.diagnosis.releases import TESTED
from quotascope.metrics.kafka.release import KafkaRelease

SOURCE = ast.parse(Path(__file__).with_name("test_releases.py").read_text(encoding="utf-8"))
MARKS = {
    function.name.removeprefix("test_"): {ast.unparse(mark).rpartition(".")[2] for mark in function.decorator_list}
    for function in SOURCE.body
    if isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
}
"""Marks of each test that runs on a release."""


def test_each_test_is_a_column() -> None:
    """Each test is in the table, and each column has a test."""
    assert list(FEATURES) == list(MARKS)


def test_each_release_was_run_and_works() -> None:
    """
    Every feature of every release passed in the last run of the matrix.

    A release that only explains has the columns that need no load.
    """
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert results.keys() == {str(release) for release in RELEASES}
    for release in RELEASES:
        wanted_here = {name for name, marks in MARKS.items() if not release.explains_only or "asked_only" in marks}
        assert results[str(release)] == dict.fromkeys(sorted(wanted_here), "passed"), release


def test_what_is_called_tested_was() -> None:
    """The product names the releases of the matrix, no more and no fewer."""
    names = {f"{release.version}{'-zk' if release.zookeeper else ''}" for release in RELEASES}
    assert {KafkaRelease.parse(name) for name in names} == TESTED


def test_the_gate_has_its_jars() -> None:
    """The jars of `make test` are among those of `make jars`."""
    assert tuple(release.version for release in RELEASES if release.in_the_gate) == provision.IN_THE_GATE


@pytest.mark.parametrize(("names", "count"), [("", 5), ("all", len(RELEASES)), ("3.3.2 4.2.2", 2)])
def test_releases_of_a_run(names: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate's releases run unless others are named."""
    monkeypatch.setenv("QUOTASCOPE_KAFKA_RELEASES", names)
    assert len(wanted()) == count


def test_an_unknown_release_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown release is an error, so that a misspelled one skips no test."""
    monkeypatch.setenv("QUOTASCOPE_KAFKA_RELEASES", "9.9.9")
    with pytest.raises(KeyError):
        wanted()
    assert matrix.main(["9.9.9"]) == 1
    assert "no scene of Kafka 9.9.9; there are 2.8.2" in capsys.readouterr().err


def test_the_table_lies_between_its_marks() -> None:
    """The table replaces only the text between its marks, and a second time changes nothing."""
    page = "before\n<!-- written by tools/generate_docs.py from what the tests found -->\nold\n<!-- end -->\nafter\n"
    written = with_table(page)
    assert written.startswith("before\n")
    assert written.endswith("<!-- end -->\nafter\n")
    assert "| 2.8.2 with ZooKeeper | yes |" in written
    assert "old" not in written
    assert with_table(written) == written
