"""Which limit of new connections an IP address is under."""

import pytest

from quotascope.exporter.join.limiting import IpLimits


def test_an_address_has_its_own_rule_or_the_default() -> None:
    """As a broker resolves them; IPv6 addresses are the same however they are written."""
    rules = IpLimits({"10.0.0.1": 5.0, "<default>": 9.0, "::1": 7.0})
    assert rules.limit("10.0.0.1") == 5.0
    assert rules.limit("0:0:0:0:0:0:0:1") == 7.0
    assert rules.limit("10.0.0.2") == 9.0


def test_an_address_without_a_rule_is_not_measured() -> None:
    """What a broker keeps of it is left over; the largest number is no limit either."""
    rules = IpLimits({"10.0.0.1": 2_147_483_647.0, "10.0.0.3": 1.0})
    for ip in ("10.0.0.1", "10.0.0.2"):
        assert rules.limit(ip) is None
        assert not rules.may_limit(ip)
    assert rules.may_limit("10.0.0.3")


@pytest.mark.parametrize("default", [{}, {"<default>": 9.0}])
def test_an_address_may_be_a_host_that_only_brokers_look_up(default: dict[str, float]) -> None:
    """Then its limit is not known, rather than the default; an address with its own rule is not in doubt."""
    rules = IpLimits({"db.example.org": 3.0, "10.0.0.1": 5.0, **default})
    assert rules.limit("10.0.0.2") is None
    assert rules.may_limit("10.0.0.2")
    assert rules.limit("10.0.0.1") == 5.0
