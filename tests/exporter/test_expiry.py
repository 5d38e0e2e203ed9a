"""Entries that are kept for a while."""

from quotascope.exporter.expiry import Expiring


def test_an_entry_is_dropped_when_it_was_not_seen_for_too_long() -> None:
    """An entry stays up to the time limit; seeing it again renews the time and the value."""
    kept: Expiring[str, int] = Expiring(10.0)
    kept.see("a", 1, 0.0)
    kept.see("b", 2, 0.0)
    assert kept.expire(10.0) == []
    kept.see("a", 3, 10.0)
    assert kept.expire(10.1) == ["b"]
    assert kept.values() == [3]
    assert (kept.get("a"), kept.get("b")) == (3, None)


def test_a_clock_that_was_set_back_keeps_nothing_for_ever() -> None:
    """A client that was seen in the future expires as well."""
    kept: Expiring[str, int] = Expiring(10.0)
    kept.see("a", 1, 100.0)
    assert kept.expire(90.0) == []
    assert kept.expire(89.0) == ["a"]
