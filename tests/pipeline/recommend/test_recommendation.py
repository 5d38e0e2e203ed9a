from __future__ import annotations

import pytest

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.pipeline.recommend.need import Need
from quotascope.pipeline.recommend.policy import BadPolicy, Policy
from quotascope.pipeline.recommend.recommendation import quotas_of, recommendations

BYTES = QuotaType.PRODUCE


def need(steps: int, broker: str = "1", kind: QuotaType = BYTES, user: str = "alice") -> Need:  # fmt: skip
    """What one user needs on one broker."""
    return Need(broker=broker, entity=QuotaEntity(user), kind=kind, steps=steps, hour=5, requests=10)  # fmt: skip


def test_neediest_broker_decides() -> None:
    """All brokers get the same limit: what the neediest one needs, with headroom, rounded up."""
    (made,) = recommendations([need(40_000), need(98_567, "2")], Policy(headroom=0.2))
    assert (made.limit, made.lowest, made.broker) == (119_000.0, 98_567.0, "2")
    assert made.requests == 20


def test_limits_have_a_floor() -> None:
    """The first unusual request of a quiet client must not run into its limit."""
    made = recommendations([need(3), need(3, kind=QuotaType.REQUEST)], Policy())
    assert [each.limit for each in made] == [10_000.0, 1.0]
    assert [each.lowest for each in made] == [3.0, 0.03]
    (own,) = recommendations([need(3)], Policy(floors={BYTES: 123_456.0}))
    assert own.limit == 124_000.0


def test_quotas_are_grouped_by_entity() -> None:
    """As they are set."""
    found = [need(50_000, user="bob"), need(70_000), need(200, kind=QuotaType.REQUEST)]
    made = recommendations(found, Policy(headroom=0.0))
    assert quotas_of(made) == {
        QuotaEntity("alice"): {"producer_byte_rate": 70_000.0, "request_percentage": 2.0},
        QuotaEntity("bob"): {"producer_byte_rate": 50_000.0},
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"share": 1.0}, {"share": -0.1}, {"headroom": -1.0}, {"floors": {BYTES: 0.0}}, {"share": float("nan")}, {"headroom": 1e306}, {"floors": {BYTES: float("inf")}}, {"floors": {BYTES: 1e300}}],
)  # fmt: skip
def test_numbers_out_of_range(wrong: dict[str, object]) -> None:
    """They are refused."""
    with pytest.raises(BadPolicy):
        Policy(**wrong)  # type: ignore[arg-type]
