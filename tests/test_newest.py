"""The versions that tests run, and what `make newest` makes of what registries offer."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.prometheus.releases import NEWEST, OLDEST, OLDEST_VERSION, newest_version
from tools import newest
from tools.newest import CannotAsk, Registry, Software

from quotascope.cli.options import CONNECTOR

LISTED = """\
[INFO] The following dependencies in Dependencies have newer versions:
[INFO]   io.prometheus.jmx:jmx_prometheus_javaagent ................. 0 -> 1.0.1
[INFO]   org.apache.spark:spark-sql-kafka-0-10_2.13-with-a-long-name .........
[INFO]                                                               0 -> 4.2.0
[INFO]
"""
"""What Maven writes; it breaks lines after long names."""


def row(name: str, *versions: str, registry: Registry = Registry.PYPI, package: str = "") -> Software:
    return Software(name=name, registry=registry, package=package or name, versions=versions)


def test_versions_are_read_from_the_files_that_name_them() -> None:
    """Each program has one or more versions, in order, read from the files that name them."""
    rows = newest.tested()
    assert len({one.name for one in rows}) == len(rows)
    for one in rows:
        numbers = [newest.number(version) for version in one.versions]
        assert numbers == sorted(numbers), one
        assert all(numbers), one
    by_name = {one.name: one.versions for one in rows}
    assert by_name["Prometheus"] == (OLDEST_VERSION, newest_version())
    assert "0.16.1" in by_name["jmx_exporter"]


def test_the_page_about_pushes_names_the_newest_prometheus() -> None:
    """The page about pushes, which is not generated, names the newest Prometheus."""
    assert f"(tested with {newest_version()})" in (newest.ROOT / "docs" / "guides" / "otlp.md").read_text()


def test_commands_and_pages_name_the_connector_that_is_tested() -> None:
    """The pages get the version from the commands."""
    artifact, _, version = CONNECTOR.removeprefix("org.apache.spark:").partition(":")
    assert newest.connectors()[artifact] == version


def test_a_file_that_names_no_version_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file without a pinned version is named, as the documentation would lack a pin that was moved."""
    for path in ("tests/cluster/pom.xml", "tests/cluster/pom-newest.xml", "tests/spark/connector/pom.xml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    monkeypatch.setattr(newest, "ROOT", tmp_path)
    with pytest.raises(LookupError, match=r"tests/spark/connector/pom\.xml does not name a version"):
        newest.tested()


def test_what_is_newer_is_told_apart() -> None:
    """Versions compare by numbers, not by letters: 1.10 is newer than 1.9."""
    rows = [row("old", "1.2", "1.9.3"), row("newest", "2.0"), row("ahead", "4.3.0")]
    lines = [*newest.report(rows, {"old": "1.10.0", "newest": "2.0", "ahead": "4.2.9"})]
    assert lines == [
        "old     1.2, 1.9.3  newer: 1.10.0",
        "newest  2.0",
        "ahead   4.3.0",
        "1 of 3 have newer versions than those tested.",
    ]
    assert [*newest.report(rows[1:2], {"newest": "2.0"})][-1] == "All are tested in their newest versions."


def answering(monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, str | int]) -> None:
    """Let each client write its answer, or end with that exit code."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        answer = next(answers[client] for client in answers if client in command)
        code, output = (answer, "") if isinstance(answer, int) else (0, answer)
        return subprocess.CompletedProcess(command, code, output, "no route to host\n" if code else "")

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("shutil.which", lambda program: program)


def test_each_registry_is_asked_by_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each registry is asked by its client; unstable versions are left out, and Prometheus's module is converted."""
    (prometheus,) = (one for one in newest.tested() if one.name == "Prometheus")
    pythons = (
        '[{"version": "3.15.0a1", "implementation": "cpython"}, {"version": "3.14.2", "implementation": "cpython"}, '
        '{"version": "3.16.1", "implementation": "pypy"}]'
    )
    answering(monkeypatch, {
        "mvn": LISTED,
        "go": "github.com/prometheus/prometheus v0.314.0 v0.317.0-rc.0 v0.316.1",
        "pip": "kafka-python (3.0.12)\nAvailable versions: 3.1.0rc1, 3.0.12, 3.0.9\n  INSTALLED: 3.0.12\n",
        "npm": "13.2.3\n",
        "python": pythons,
    })  # fmt: skip
    rows = [
        row("agent", "1", registry=Registry.MAVEN, package="io.prometheus.jmx:jmx_prometheus_javaagent"),
        row(
            "long", "1", registry=Registry.MAVEN, package="org.apache.spark:spark-sql-kafka-0-10_2.13-with-a-long-name"
        ),
        prometheus,
        row("kafka-python", "1"),
        row("board", "1", registry=Registry.NPM),
        row("Python", "3.11", registry=Registry.UV, package="cpython"),
    ]
    assert newest.offered(rows) == {
        "agent": "1.0.1",
        "long": "4.2.0",
        "Prometheus": "3.16.1",
        "kafka-python": "3.0.12",
        "board": "13.2.3",
        "Python": "3.14",
    }


@pytest.mark.parametrize(
    ("one", "answer", "words"),
    [
        (row("x", "1"), 1, "cannot ask its registry, which may be out of reach: no route to host"),
        (row("x", "1"), "Available versions: 1.0rc1\n", "pip offers no stable version of x"),
        (row("x", "1", registry=Registry.MAVEN, package="g:a"), "[INFO] BUILD SUCCESS", "mvn finds no version of g:a"),
        (row("x", "1", registry=Registry.NPM), 1, "`npm` cannot ask"),
    ],
)
def test_a_registry_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one: Software, answer: str | int, words: str
) -> None:
    """The registry is named on standard error, with exit code 1: no answer is not an answer that nothing is newer."""
    answering(monkeypatch, {one.registry.value: answer})
    monkeypatch.setattr(newest, "tested", lambda: (one,))
    assert newest.main([]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("newest: ")
    assert words in error


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing client is named with the command that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotAsk, match="`npm` is missing: run `make services`"):
        newest.offered([row("x", "1", registry=Registry.NPM)])


@pytest.mark.real
def test_the_releases_of_prometheus_are_those_of_the_documentation() -> None:
    """The releases are one before and one after the change of ranges, and the newest, which `go.mod` names."""
    assert newest.number("2.42") <= newest.number(OLDEST.version) < (3,)
    assert NEWEST.version == newest_version()
