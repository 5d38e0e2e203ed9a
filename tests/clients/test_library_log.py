import logging

import pytest

from quotascope.clients.library_log import LibraryLog


def test_nothing_of_the_library_reaches_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its logger and all below it are silent, whatever the level of the root."""
    caplog.set_level(logging.DEBUG)
    LibraryLog("noisy").install()
    logging.getLogger("noisy.client").debug("configuration: password=hunter2")
    logging.getLogger("noisy.client").error("Connection failed")
    assert not caplog.records


def test_the_first_exception_is_remembered() -> None:
    """The cause is the first that was logged; what follows from it comes after."""
    log = LibraryLog("noisy")
    log.install()
    logger = logging.getLogger("noisy.client")
    logger.warning("no exception in %s", "this")
    logger.warning("without arguments")
    assert log.complaints == []
    cause = ConnectionError("refused")
    logger.warning("attempt to %s failed: %s", "broker-1", cause)
    logger.error("gave up: %s", TimeoutError())
    assert log.complaints[0] is cause


def test_a_new_log_replaces_the_old() -> None:
    """Connecting again and again does not pile up handlers."""
    LibraryLog("noisy").install()
    last = LibraryLog("noisy")
    last.install()
    assert logging.getLogger("noisy").handlers == [last]
