"""
A second try for the tests that wait for other processes: real brokers, browsers, Prometheus, our own commands.

How long those take hangs on the machine they share; a mistake that is there each time fails twice. Whoever passed at the second
try is named in the end with what failed at the first, so that a rare mistake can be seen, too.
"""

from collections.abc import Iterable

import pytest

_FOLDERS = tuple(
    f"tests/{name}/"
    for name in (
        "cli",
        "exporter/doctor",
        "exporter/own_page",
        "exporter/page",
        "exporter/sources/http",
        "exporter/web",
        "spark",
    )
)
"""Where tests start processes and servers of ours without being marked `real`."""
_FAILED_ONCE = pytest.StashKey[list[pytest.TestReport]]()


def pytest_configure(config: pytest.Config) -> None:
    """Nothing failed so far."""
    config.stash[_FAILED_ONCE] = []
    config.pluginmanager.register(_Listener(config.stash[_FAILED_ONCE]))


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Tests of pure functions get none."""
    for item in items:
        if item.get_closest_marker("real") or item.nodeid.startswith(_FOLDERS):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Tell what failed at the first try."""
    for report in config.stash[_FAILED_ONCE]:
        terminalreporter.section(f"{report.nodeid} was tried twice")
        terminalreporter.write_line(report.longreprtext)


class _Listener:
    """Keeps the reports of first tries."""

    def __init__(self, failed: list[pytest.TestReport]) -> None:
        self._failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """`rerun` is the outcome that pytest-rerunfailures gives a try that is repeated."""
        outcome: str = report.outcome
        if outcome == "rerun":
            self._failed.append(report)
