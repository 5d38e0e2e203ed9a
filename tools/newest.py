"""
The versions that tests run, from the files that name them, and what the registries offer: `make newest`.

`docs/start/dialects.md` gets its table from the same list.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = ROOT / "tests"
RECORDED: Final = "tests/spark_listener/recorded"
"""Folder with the events of each version of Spark."""
_STABLE: Final = re.compile(r"v?\d+(?:\.\d+)*")
_UPDATES: Final = "org.codehaus.mojo:versions-maven-plugin:2.18.0:display-dependency-updates"
_OFFERED: Final = re.compile(r"([\w.-]+:[\w.-]+) [.\s]+ \S+ ->\s+(\S+)")


class CannotAsk(Exception):
    """A registry, or its client, did not answer; the message says which and why."""


class Registry(StrEnum):
    """Registry of a program or library, and the client that asks it."""

    MAVEN = "mvn"
    GO = "go"
    PYPI = "pip"
    NPM = "npm"
    UV = "uv"
    """Python itself: the versions that the installed uv knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """One program or library, and the versions of it that tests run."""

    name: str
    registry: Registry
    package: str
    """Name in the registry: `group:artifact` for Maven."""
    versions: tuple[str, ...]
    """Versions that tests run, oldest first."""
    note: str = ""
    """Note in the documentation's table about what is tested otherwise."""
    written: Callable[[str], str] = str
    """Function from the version of the package to that of the program."""

    @property
    def newest(self) -> str:
        """Newest version that is tested."""
        return self.versions[-1]


def tested() -> tuple[Software, ...]:
    """Return all that is tested in several versions or against a foreign release, in the order of the documentation."""
    kafka, newest = _properties("tests/cluster/pom.xml"), _properties("tests/cluster/pom-newest.xml")
    jars = connectors()
    connector = jars["spark-sql-kafka-0-10_2.13"]
    spark = sorted({connector, *recorded(), _pinned("pyspark")}, key=number)
    delta = next(name for name in jars if name.startswith("delta-spark"))
    grafana = json.loads(_text("tests/dashboards/grafana/package.json"))["dependencies"]
    return (
        _maven("Kafka", "org.apache.kafka:kafka_2.13", kafka["kafka.version"], newest["kafka.version"], *_listed("IN_THE_GATE")),
        _maven("jmx_exporter", "io.prometheus.jmx:jmx_prometheus_javaagent", *_listed("JMX_EXPORTERS"), kafka["jmx-exporter.version"], note="Amazon MSK's 0.12.0: recorded pages"),
        _maven("Jolokia 1", "org.jolokia:jolokia-jvm", kafka["jolokia1.version"]),
        _maven("Jolokia 2", "org.jolokia:jolokia-agent-jvm", kafka["jolokia2.version"]),
        _maven("Strimzi metrics-reporter", "io.strimzi:metrics-reporter", kafka["strimzi-reporter.version"], note="outside Kubernetes"),
        _maven("Strimzi quotas plugin", "io.strimzi:kafka-quotas-plugin", "0.3.1", note="recorded pages"),
        Software(name="Prometheus", registry=Registry.GO, package="github.com/prometheus/prometheus", versions=(_first("tests/prometheus/releases.py", r'^OLDEST_VERSION: Final = "([\d.]+)"'), _prometheus(_required("prometheus", "github.com/prometheus/prometheus"))), written=_prometheus),
        Software(name="OpenTelemetry Collector", registry=Registry.GO, package="go.opentelemetry.io/collector/otelcol", versions=(_required("collector", "go.opentelemetry.io/collector/otelcol").removeprefix("v"),), written=lambda version: version.removeprefix("v")),
        Software(name="Spark", registry=Registry.PYPI, package="pyspark", versions=tuple(spark)),
        _maven("Spark's Kafka connector", "org.apache.spark:spark-sql-kafka-0-10_2.13", connector),
        _maven("Delta Lake", f"io.delta:{delta}", jars[delta]),
        Software(name="Grafana's components", registry=Registry.NPM, package="@grafana/ui", versions=(grafana["@grafana/ui"],)),
        *(Software(name=name, registry=Registry.PYPI, package=name, versions=(_pinned(name),)) for name in ("kafka-python", "confluent-kafka", "opentelemetry-sdk")),
        Software(name="Python", registry=Registry.UV, package="cpython", versions=_pythons()),
    )  # fmt: skip


def connectors() -> dict[str, str]:
    """Return the versions of the jars that Spark is run with, by artifact."""
    pom = "tests/spark/connector/pom.xml"
    jars = re.findall(r"<artifactId>([\w.-]+)</artifactId>\s+<version>([\d.]+)<", _text(pom))
    if not jars:
        raise LookupError(f"{pom} does not name a version")
    return dict(jars)


def recorded() -> list[str]:
    """Return the versions of Spark whose events are recorded, oldest first."""
    return sorted((folder.name for folder in (ROOT / RECORDED).iterdir() if folder.is_dir()), key=number)


def table() -> str:
    """Return the table of the documentation."""
    lines = ["| | versions | |", "|---|---|---|"]
    lines += [f"| {program.name} | {', '.join(program.versions)} | {program.note} |" for program in tested()]
    return "\n".join(lines)


def number(version: str) -> tuple[int, ...]:
    """Return the numbers of a version for comparisons; empty for a version that is not stable."""
    return tuple(map(int, re.findall(r"\d+", version))) if _STABLE.fullmatch(version) else ()


def offered(rows: Iterable[Software]) -> Mapping[str, str]:
    """
    Ask the registries for the newest stable version of each row's package, written as the program's.

    The rows' names are the keys.

    Raises:
        CannotAsk: A client is missing, a registry cannot be reached, or does not have the package.

    """
    every = list(rows)
    of_maven = _ask_maven([row for row in every if row.registry is Registry.MAVEN])
    offers = {}
    for row in every:
        versions = of_maven[row.package] if row.registry is Registry.MAVEN else _ASK[row.registry](row.package)
        stable = [version for version in versions if number(version)]
        if not stable:
            raise CannotAsk(f"{row.registry} offers no stable version of {row.package}")
        offers[row.name] = row.written(max(stable, key=number))
    return offers


def report(rows: Sequence[Software], newest: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each row, and one with the number of rows that are behind."""
    width = max(len(row.name) for row in rows)
    behind = 0
    for row in rows:
        is_newer = number(newest[row.name]) > number(row.newest)
        behind += is_newer
        yield f"{row.name:<{width}}  {', '.join(row.versions)}{f'  newer: {newest[row.name]}' if is_newer else ''}"
    yield (
        f"{behind} of {len(rows)} have newer versions than those tested."
        if behind
        else "All are tested in their newest versions."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is tested and what is newer; 1 where a registry cannot be asked."""
    parser = argparse.ArgumentParser(prog="make newest", description=main.__doc__)
    parser.parse_args(arguments)
    rows = tested()
    try:
        newest = offered(rows)
    except CannotAsk as error:
        sys.stderr.write(f"newest: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in report(rows, newest)))
    return 0


def _maven(name: str, package: str, *versions: str, note: str = "") -> Software:
    return Software(
        name=name,
        registry=Registry.MAVEN,
        package=package,
        versions=tuple(sorted(set(versions), key=number)),
        note=note,
    )


def _ask_maven(rows: Sequence[Software]) -> Mapping[str, list[str]]:
    if not rows:
        return {}
    # one run for all packages, as Maven starts slowly
    with tempfile.TemporaryDirectory() as name:
        pom = Path(name) / "pom.xml"
        dependencies = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>0</version></dependency>".format(
                *row.package.split(":")
            )
            for row in rows
        )
        head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        project = (
            "<groupId>quotascope</groupId><artifactId>newest</artifactId><version>1</version><packaging>pom</packaging>"
        )
        pom.write_text(f"{head}{project}<dependencies>{dependencies}</dependencies></project>", encoding="utf-8")
        unstable = "-Dmaven.version.ignore=(?i).*[-.](M\\d+|alpha|beta|rc|preview|cr|ea|pre).*"
        output = _run("mvn", "--batch-mode", "--update-snapshots", "--file", str(pom), _UPDATES, unstable)
    lines = re.sub(r"^\[INFO\]\s*", " ", output, flags=re.MULTILINE).replace("\n", " ")
    versions = {package: [version] for package, version in _OFFERED.findall(lines)}
    for row in rows:
        if row.package not in versions:
            raise CannotAsk(f"mvn finds no version of {row.package}: is a Maven repository reachable?")
    return versions


def _ask_go(module: str) -> list[str]:
    return _run("go", "list", "-m", "-versions", module).split()[1:]


def _ask_pypi(package: str) -> list[str]:
    output = _run(sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package)
    return re.findall(r"[^\s,]+", output.partition("Available versions:")[2].partition("\n")[0])


def _ask_npm(package: str) -> list[str]:
    return [_run("npm", "view", package, "version").strip()]


def _ask_uv(package: str) -> list[str]:
    uv = Path(sys.executable).parent / "uv"
    listed = json.loads(_run(str(uv), "python", "list", "--only-downloads", "--output-format", "json"))
    # tests name a Python by two numbers
    return [
        ".".join(entry["version"].split(".")[:2])
        for entry in listed
        if entry["implementation"] == package and _STABLE.fullmatch(entry["version"])
    ]


_ASK: Final[Mapping[Registry, Callable[[str], list[str]]]] = {
    Registry.GO: _ask_go,
    Registry.PYPI: _ask_pypi,
    Registry.NPM: _ask_npm,
    Registry.UV: _ask_uv,
}


def _run(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        raise CannotAsk(f"`{program}` is missing: run `make services`")
    with tempfile.TemporaryDirectory() as folder:  # in a folder outside of any module of Go
        process = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode:
        last_lines = (process.stderr or process.stdout).strip().splitlines()[-3:]
        name = Path(program).name
        raise CannotAsk(f"`{name}` cannot ask its registry, which may be out of reach: {' '.join(last_lines)}")
    return process.stdout


def _prometheus(version: str) -> str:
    """Return the version of Prometheus: v0.316.0 of its module is 3.16.0."""
    _, release, patch = number(version)
    return f"{release // 100}.{release % 100}.{patch}"


def _pythons() -> tuple[str, ...]:
    lowest = _first("pyproject.toml", r'^requires-python = ">=([\d.]+)"')
    return tuple(sorted({lowest, f"{sys.version_info.major}.{sys.version_info.minor}"}, key=number))


def _listed(constant: str) -> list[str]:
    """Return the versions of a constant of `tests/cluster/provision.py`."""
    return re.findall(r'"([\d.]+)"', _first("tests/cluster/provision.py", rf"^{constant}: Final = \((.+)\)"))


def _required(folder: str, module: str) -> str:
    return _first(f"tests/{folder}/go.mod", rf"^\s*(?:require )?{re.escape(module)} (v[\d.]+)(?: //.*)?$")


def _pinned(package: str) -> str:
    return _first("constraints.txt", rf"^{re.escape(package)}==([\d.]+)$")


def _properties(path: str) -> dict[str, str]:
    return dict(re.findall(r"<([\w.-]+\.version)>([\d.]+)<", _text(path)))


def _first(path: str, pattern: str) -> str:
    match = re.search(pattern, _text(path), flags=re.MULTILINE)
    if match is None:
        raise LookupError(f"{path} does not name a version: nothing matches {pattern}")
    return match[1]


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
