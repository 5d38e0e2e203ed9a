"""One JVM a release for all comparisons, and one line at the end of the run about how many there were."""

from collections.abc import Iterator

import pytest
from tests.differential.drive import Budget
from tests.differential.kafka import JARS, Kafka

_BUDGET = pytest.StashKey[Budget]()
_VERSIONS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def budget(pytestconfig: pytest.Config) -> Budget:
    return pytestconfig.stash.setdefault(_BUDGET, Budget())


@pytest.fixture(scope="session", params=JARS)
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """Run with the classes of each release, one after the other."""
    with Kafka(JARS[request.param]()) as kafka:
        request.config.stash.setdefault(_VERSIONS, []).append(kafka.version)
        yield kafka


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many operations were compared."""
    budget = config.stash.get(_BUDGET, None)
    if budget is not None and budget.compared:
        releases = config.stash[_VERSIONS]
        versions = ", ".join(releases)
        terminalreporter.write_line(f"differential, Kafka {versions}: {budget.report()}")
