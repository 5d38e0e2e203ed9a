"""What a replay keeps count of."""

import pytest

from quotascope.metrics import INT_MAX
from quotascope.pipeline.kernels.ledger import (
    LONGEST_MS,
    MUTE_END,
    MUTED_MS,
    RECOVERY_MS,
    THROTTLED,
    THROTTLED_MS,
    Ledger,
    book_throttle,
    cell_of,
    enter_free,
    new_ledger,
)
from quotascope.pipeline.kernels.requests import (
    FETCH,
    MUTATION,
    NO_KIND,
    PRODUCE,
    REQUEST,
    Scale,
)

KINDS = (PRODUCE, FETCH, REQUEST, MUTATION)


@pytest.fixture
def ledger() -> Ledger:
    """Of one client under one candidate."""
    return new_ledger(Scale(1, 1, 1, 1, 0, INT_MAX))


def _figure(ledger: Ledger, kind: int, field: int) -> int:
    return int(ledger.cells[cell_of(0, kind) + field])


@pytest.mark.parametrize("kind", KINDS)
def test_throttles_add_up(ledger: Ledger, kind: int) -> None:
    """Times told are a sum; muted is a client once, though two throttles overlap by 200 ms."""
    book_throttle(ledger, 0, kind, 1_000, 500)
    book_throttle(ledger, 0, kind, 1_300, 300)
    fields = (THROTTLED, THROTTLED_MS, LONGEST_MS, MUTED_MS, MUTE_END)
    found = [_figure(ledger, kind, field) for field in fields]
    assert found == [2, 800, 500, 600, 1_600]
    for other in {*KINDS} - {kind}:
        assert [_figure(ledger, other, field) for field in fields] == [0] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_recovery_is_from_the_first_throttle_of_a_burst_to_its_end(
    ledger: Ledger, kind: int
) -> None:
    """Which a request of the same quota ends that is not throttled, and none of another; the longest burst counts."""
    book_throttle(ledger, 0, kind, 1_000, 500)
    book_throttle(ledger, 0, kind, 3_000, 500)
    for other in {*KINDS, NO_KIND} - {kind}:
        enter_free(ledger, 0, other, timed=False, now_ms=4_000)
    assert _figure(ledger, kind, RECOVERY_MS) == 0
    enter_free(ledger, 0, kind, timed=False, now_ms=6_000)
    assert _figure(ledger, kind, RECOVERY_MS) == 5_000
    enter_free(ledger, 0, kind, timed=False, now_ms=60_000)
    book_throttle(ledger, 0, kind, 70_000, 500)
    enter_free(ledger, 0, kind, timed=False, now_ms=71_000)
    assert _figure(ledger, kind, RECOVERY_MS) == 5_000


def test_bursts_of_quotas_go_on_side_by_side(ledger: Ledger) -> None:
    """A request that costs thread time ends that of the request quota as well."""
    for number, kind in enumerate(KINDS, 1):
        book_throttle(ledger, 0, kind, 1_000 * number, 500)
    enter_free(ledger, 0, FETCH, timed=True, now_ms=10_000)
    found = [_figure(ledger, kind, RECOVERY_MS) for kind in KINDS]
    assert found == [0, 8_000, 7_000, 0]
