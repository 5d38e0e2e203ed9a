"""IP addresses as Java spells them."""

import pytest

from quotascope.metrics import MalformedName, host_address


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:0DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_spells_each_address_in_one_way(text: str, spelled: str) -> None:
    """IPv6 in full, mapped IPv4 as what it is."""
    assert host_address(text) == spelled


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "1.2.3.4\n", ":" * 9_999])
def test_refuses_what_is_no_address(text: str) -> None:
    """Names are not looked up."""
    with pytest.raises(MalformedName, match="not an IP address"):
        host_address(text)
