"""The scrapers of the soak see what is not true on a page."""

from dataclasses import replace
from typing import Any

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


@pytest.mark.parametrize(
    ("old", "new", "expected", "found"),
    [
        pytest.param("", "", {}, [], id="what agrees with the agents is fine"),
        pytest.param("} 5.0", "} 4.0", {}, ["broker 1: produce rates add up to 14 and not to 15"], id="a client that is neither shown nor folded"),
        pytest.param("", "", {"at": 200.0}, ["broker 1: numbers are 100 s old"], id="a page from a while ago, by the agent's own clock"),
        pytest.param("", "", {"up": {"node-1": True, "node-2": True}}, ["node-2 is shown down"], id="wrong health"),
        pytest.param("", "", {"listed": frozenset({"node-1"})}, ["sources ['node-1', 'node-2'] and not ['node-1']"], id="a source that is not listed"),
        pytest.param('"clock"', '"o"', {}, ["1 sources are up, but 1 sums and 0 clocks are shown"], id="a source without numbers"),
        pytest.param(
            "} 3\n", "} 2\n", {}, ['quotascope_limits_refresh_errors_total{cluster="soak"} fell from 3 to 2'], id="a falling counter"),
        pytest.param('node-2"} 0.0', 'node-3"} 0.0', {"up": {}, "listed": None}, [], id="right after a change it is not certain what is shown"),
    ]
)  # fmt: skip
def test_faults_of_a_page(old: str, new: str, expected: dict[str, Any], found: list[str]) -> None:
    """What is not true is seen, and nothing else."""
    page = read_page(PAGE.replace(old, new) if old else PAGE)
    assert page.samples == 7
    assert list(faults(page, replace(EXPECTED, **expected))) == found


def test_series_that_is_there_twice_is_refused() -> None:
    """Prometheus would drop such a page, and so does the strict reading."""
    assert strictly_parsed(PAGE) == 7
    with pytest.raises(ValueError, match="1 series are there twice"):
        strictly_parsed(PAGE + PAGE.splitlines()[1] + "\n")
