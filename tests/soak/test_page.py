"""The scrapers of the soak see what is not true on a page."""

from dataclasses import replace

import pytest
from benchmarks.soak.page import Expected, faults, read_page, strictly_parsed

PAGE = """\
# TYPE kafka_quota_produce_bytes_per_second gauge
kafka_quota_produce_bytes_per_second{broker="1",client_id="a",cluster="soak",user="u"} 10.0
kafka_quota_produce_bytes_per_second{broker="1",client_id="__overflow__",cluster="soak",user="__overflow__"} 5.0
kafka_quota_produce_bytes_per_second{broker="1",client_id="sum-of-others",cluster="soak",user="checker"} 15.0
kafka_quota_fetch_bytes_per_second{broker="1",client_id="clock",cluster="soak",user="checker"} 100.0
quotascope_source_up{cluster="soak",source="node-1"} 1.0
quotascope_source_up{cluster="soak",source="node-2"} 0.0
quotascope_limits_refresh_errors_total{cluster="soak"} 3
"""
EXPECTED = Expected(
    at=101.0,
    up={"node-1": True, "node-2": False},
    agents=frozenset({"node-1", "node-2"}),
    listed=frozenset({"node-1", "node-2"}),
    counters={'quotascope_limits_refresh_errors_total{cluster="soak"}': 3.0},
)


def found(text: str = PAGE, expected: Expected = EXPECTED) -> list[str]:
    """The faults of a page."""
    return list(faults(read_page(text), expected))


def test_true_page_has_no_faults() -> None:
    """What agrees with the agents is fine."""
    assert found() == []
    assert read_page(PAGE).samples == 7


def test_missing_client_is_seen() -> None:
    """A client that is neither shown nor folded is missing in the sum."""
    (fault,) = found(PAGE.replace("} 5.0", "} 4.0"))
    assert fault == "broker 1: produce rates add up to 14 and not to 15"


def test_old_numbers_are_seen() -> None:
    """A page from a while ago is recognized by the agent's own clock."""
    (fault,) = found(expected=replace(EXPECTED, at=200.0))
    assert fault == "broker 1: numbers are 100 s old"


def test_wrong_health_is_seen() -> None:
    """A node that is down must not be shown up."""
    up = {"node-1": True, "node-2": True}
    (fault,) = found(expected=replace(EXPECTED, up=up))
    assert fault == "node-2 is shown down"


def test_missing_source_is_seen() -> None:
    """So must be listed what the configuration lists."""
    listed = frozenset({"node-1"})
    (fault,) = found(expected=replace(EXPECTED, listed=listed))
    assert fault == "sources ['node-1', 'node-2'] and not ['node-1']"


def test_source_without_numbers_is_seen() -> None:
    """A source that is up shows its numbers."""
    page = "".join(line for line in PAGE.splitlines(keepends=True) if "clock" not in line)
    (fault,) = found(page)
    assert fault == "1 sources are up, but 1 sums and 0 clocks are shown"


def test_falling_counter_is_seen() -> None:
    """The exporter's own counters never fall while it runs."""
    (fault,) = found(PAGE.replace("} 3\n", "} 2\n"))
    assert fault.endswith("fell from 3 to 2")


def test_unsettled_page_is_not_judged_by_sources() -> None:
    """Right after a change it is not certain what is shown."""
    unsure = replace(EXPECTED, up={}, listed=None)
    assert found(PAGE.replace('node-2"} 0.0', 'node-3"} 0.0'), unsure) == []


def test_series_that_is_there_twice_is_refused() -> None:
    """Prometheus would drop such a page, and so does the strict reading."""
    assert strictly_parsed(PAGE) == 7
    with pytest.raises(ValueError, match="1 series are there twice"):
        strictly_parsed(PAGE + PAGE.splitlines()[1] + "\n")
