"""Sums of teams on three brokers whose leaders move, as in `benchmarks teams-truth`, beside what brokers report."""

from __future__ import annotations

import pytest
from tests.cluster.sessions import ROLES
from tests.integration.truth import BOTH, Truth, measure, three_brokers

pytestmark = [pytest.mark.real, pytest.mark.slow]
CAP = 5
"""Entities that the second exporter shows."""
NEAR = 0.01
"""Greatest difference beside the expected excess: of headers, which are no records, and as scrapes are few."""


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """Return the bytes of 25 sessions of five roles, each way; most of them stay, and send ten requests a second."""
    folder = tmp_path_factory.mktemp("team-bytes")
    with three_brokers(folder) as cluster:
        return measure(cluster, folder, 75, count=25, cap=CAP)


def test_sums_are_those_of_the_rates_that_the_brokers_report(truth: Truth) -> None:
    """In the same answers; also of the exporter that shows fewer entities than there are."""
    every, capped = truth.shown
    assert capped <= CAP + 1 < every
    for scrapes in truth.scrapes:
        assert len(scrapes) >= 3
        for scrape in scrapes:
            for kind in BOTH:
                used = {team: rate for team, rate in scrape.reported[kind].items() if rate}
                assert used == pytest.approx(
                    {team: rate for team, rate in scrape.rates[kind].items() if rate}, rel=1e-9
                )


def test_counters_are_the_bytes_of_the_brokers(truth: Truth) -> None:
    """As near as rates can be, which are too high by the half of a request."""
    assert truth.moves
    # the rate at the end of a pause between scrapes stands for all of it, and rates differ by a tenth
    near = NEAR + 0.1 * truth.longest_pause / truth.seconds
    for kind in BOTH:
        for sums in truth.counted:
            assert {team for team, amount in sums[kind].items() if amount} == set(ROLES)
            assert -near <= truth.total(sums, kind) / truth.brokers[kind] - 1 <= truth.excess + near


def test_request_logs_have_the_bytes_of_the_brokers(truth: Truth) -> None:
    """Of each team, which no counter of a broker has."""
    for kind in BOTH:
        assert truth.total(truth.logged, kind) == pytest.approx(truth.brokers[kind], rel=0.01)
        for sums in truth.counted:
            assert sums[kind] == pytest.approx(truth.logged[kind], rel=truth.excess + 3 * NEAR)
