"""
A second try for the tests that wait for other processes: real brokers, browsers, Prometheus, our own commands.

How long those take hangs on the machine they share; a mistake that is there each time fails twice. A test gets one when
it started a process itself, or uses a fixture that did; any other test gets none, and neither does any after so many in
one run: what is that frequent is no accident. A test that passed at the second try is named in the end with what failed
at the first, so that a rare mistake can be seen, too.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Any

import pytest

MOST = 5
"""Second tries in a run."""


def pytest_configure(config: pytest.Config) -> None:
    """Count the processes that tests start and the tests that fail."""
    seen = _Seen()
    config.pluginmanager.register(seen, "second tries")
    # no audit hook: in the middle of `sys.settrace` another thread may run while it does, and fails to install
    # coverage's function
    patch = pytest.MonkeyPatch()
    patch.setattr(subprocess.Popen, "__init__", seen.counted(subprocess.Popen.__init__))
    patch.setattr(os, "fork", seen.counted(os.fork))
    config.add_cleanup(patch.undo)


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Decide about a second try of a test when it has failed."""
    seen = config.pluginmanager.get_plugin("second tries")
    assert isinstance(seen, _Seen)
    for item in items:
        condition = partial(seen.deserves, item)
        item.add_marker(pytest.mark.flaky(reruns=1, condition=condition))


class _Seen:
    """Tests and fixtures that started processes, and tests that failed once."""

    def __init__(self) -> None:
        self._started = 0
        self._fixtures: set[tuple[str, str]] = set()
        self._own: set[str] = set()
        self._failed: list[pytest.TestReport] = []

    def counted(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function wrapped so that each call is counted as the start of a process."""

        @wraps(start)
        def started(*arguments: Any, **keywords: Any) -> Any:
            self._started += 1
            return start(*arguments, **keywords)

        return started

    def deserves(self, item: pytest.Item, _error: BaseException | None) -> bool:
        """Return whether the test that failed waited for a process, and second tries are left."""
        if len(self._failed) >= MOST:
            return False
        info = getattr(item, "_fixtureinfo", None)
        used = {} if info is None else info.name2fixturedefs
        return item.nodeid in self._own or any(
            (each.argname, each.baseid) in self._fixtures
            for each in (definition for found in used.values() for definition in found)
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        """Remember a fixture that starts a process, for all tests that use it."""
        before = self._started
        try:
            return (yield)
        finally:
            if self._started > before:
                self._fixtures.add((fixturedef.argname, fixturedef.baseid))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Remember a test that starts a process."""
        before = self._started
        try:
            return (yield)
        finally:
            if self._started > before:
                self._own.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the reports of first tries: pytest-rerunfailures gives a try that is repeated the outcome `rerun`."""
        outcome: str = report.outcome
        if outcome == "rerun":
            self._failed.append(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what failed at the first try, and the number of second tries."""
        for report in self._failed:
            terminalreporter.section(f"{report.nodeid} was tried twice")
            terminalreporter.write_line(report.longreprtext)
        if len(self._failed) >= MOST:
            terminalreporter.write_line(f"{MOST} tests were tried twice: later failures got no second try")
