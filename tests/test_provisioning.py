"""Behavior of tests that lack a program that they need."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster import provision as kafka
from tests.provisioning import NotFetched
from tests.spark import provision as spark
from tests.spark.connect.provision import installed as client
from tests.spark.connector.provision import jars as connector
from tests.spark.versions import CONNECTOR, NEWEST, classes, folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds nothing, a pip that reaches nothing, and no other program."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "java").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "quotascope"


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (kafka.libs, "run `make jars`"),
        (kafka.agents, "run `make jars`"),
        (kafka.newest_libs, "run `make jars`"),
        (lambda: spark.installed(CONNECTOR), "run `make spark`"),
        (client, "run `make spark`"),
        (connector, "run `python -m tests.spark.connector.provision`"),
    ],
)
def test_what_is_missing_says_what_to_run(needed: Callable[[], object], words: str) -> None:
    """A missing program is a message with what to run, instead of an error of an import or of Java."""
    with pytest.raises(NotFetched, match=words):
        needed()


@pytest.mark.parametrize(
    ("main", "reason"),
    [
        (kafka.main, "provision: `mvn` is missing: install Maven and a JDK 17 or newer\n"),
        (lambda: spark.main([CONNECTOR]), f"pyspark=={CONNECTOR}"),
    ]
)  # fmt: skip
def test_a_command_that_fails_has_a_reason(
    main: Callable[[], int], reason: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that fails prints its reason on standard error without a traceback, and leaves nothing half done."""
    assert main() == 1
    error = capsys.readouterr().err
    assert error.startswith("provision: ")
    assert reason in error
    assert [*cache.iterdir()] == []


def test_what_was_fetched_is_not_fetched_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run needs no program and no network, and prints the folders."""
    monkeypatch.setattr(sys, "prefix", str(cache))  # where the archive of the newest Spark is
    (folder(CONNECTOR) / "pyspark" / "bin").mkdir(parents=True)
    kafka.folder().mkdir()
    kafka.newest_folder().mkdir()
    more = [*map(kafka.exporter_folder, kafka.JMX_EXPORTERS), *map(kafka.release_folder, kafka.IN_THE_GATE)]
    of_spark = [classes(NEWEST), classes(CONNECTOR)]
    for each in (*more, *of_spark, kafka.classes()):
        each.mkdir(parents=True)
    assert (spark.main([CONNECTOR]), kafka.main()) == (0, 0)
    folders = folder(CONNECTOR), *of_spark, kafka.folder(), kafka.classes(), kafka.newest_folder(), *more
    assert capsys.readouterr().out.split() == [*map(str, folders)]
