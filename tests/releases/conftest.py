"""
The scene of each release, made once and looked at by many tests.

`make test` runs those of the gate, `make kafka-matrix` all; QUOTASCOPE_KAFKA_RELEASES names others: `2.8.2 3.7.2`, or
`all`. With QUOTASCOPE_KAFKA_RESULTS, what passed and what failed is written to that file, by release and what is
tested.
"""

import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.releases.observed import RELEASES, Observed, Release, observe


def wanted() -> tuple[Release, ...]:
    """Return the releases of this run. An unknown name is an error, not a skip."""
    names = os.environ.get("QUOTASCOPE_KAFKA_RELEASES", "").split()
    if not names:
        return tuple(release for release in RELEASES if release.in_the_gate)
    if names == ["all"]:
        return RELEASES
    by_version = {release.version: release for release in RELEASES}
    return tuple(by_version[name] for name in names)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a scene for each release of this run, but no test of a load for a release that only explains."""
    if "observed" in metafunc.fixturenames:
        loaded = metafunc.definition.get_closest_marker("asked_only") is None
        releases = [release for release in wanted() if not (loaded and release.explains_only)]
        metafunc.parametrize("release", releases, ids=str, scope="session")


class Scenes:
    """The scenes of this run. A scene whose test failed is made again for the second try."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Release, Observed] = {}
        self._count = 0

    def of(self, release: Release) -> Observed:
        if release not in self._made:
            self._count += 1
            self._made[release] = observe(release, self._folder / f"{self._count}")
        return self._made[release]

    def drop(self, release: Release) -> None:
        self._made.pop(release, None)


@pytest.fixture(scope="session")
def _scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return Scenes(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def observed(release: Release, _scenes: Scenes, request: pytest.FixtureRequest) -> Iterator[Observed]:
    """Yield the scene of a release."""
    yield _scenes.of(release)
    if getattr(request.node, "failed", False):
        _scenes.drop(release)


_results: dict[str, dict[str, str]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Remember what failed, for the second try, and what came of each test, for the table."""
    report = yield
    release = getattr(item, "callspec", None) and item.callspec.params.get("release")  # type: ignore[attr-defined]
    if isinstance(release, Release) and (report.when == "call" or report.failed):
        item.failed = report.failed  # type: ignore[attr-defined]
        feature = item.originalname.removeprefix("test_")  # type: ignore[attr-defined]
        _results.setdefault(str(release), {})[feature] = "failed" if report.failed else "passed"
    return report


def pytest_sessionfinish() -> None:
    """Write the results, where they are asked for, beside those of other releases that are there already."""
    target = os.environ.get("QUOTASCOPE_KAFKA_RESULTS")
    if target and _results:
        path = Path(target)
        previous = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        merged = {**previous, **_results}
        text = json.dumps({name: dict(sorted(merged[name].items())) for name in sorted(merged)}, indent=2)
        path.write_text(f"{text}\n", encoding="utf-8")
