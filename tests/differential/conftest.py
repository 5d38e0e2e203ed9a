"""One JVM for all comparisons, and one line at the end of the run about how many there were."""

from collections.abc import Iterator

import pytest
from tests.cluster.provision import libs
from tests.differential.budget import Budget
from tests.differential.kafka import Kafka

_BUDGET = pytest.StashKey[Budget]()
_VERSION = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def budget(pytestconfig: pytest.Config) -> Budget:
    """The operations of this run."""
    return pytestconfig.stash.setdefault(_BUDGET, Budget())


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> Iterator[Kafka]:
    """Kafka's classes."""
    with Kafka(libs()) as kafka:
        pytestconfig.stash[_VERSION] = kafka.version
        yield kafka


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many operations were compared."""
    budget = config.stash.get(_BUDGET, None)
    if budget is not None and budget.compared:
        version = config.stash.get(_VERSION, "")
        terminalreporter.write_line(f"differential, Kafka {version}: {budget.report()}")
