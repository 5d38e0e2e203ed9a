"""IP addresses as Java spells them, and thus Kafka's metrics."""

from ipaddress import IPv6Address, ip_address

from .errors import MalformedName


def host_address(text: str) -> str:
    """
    Return the one spelling of an address (Java: `InetAddress.getHostAddress`).

    IPv6 is written out without `::` and leading zeros, `0:0:0:0:0:0:0:1`; an IPv4 address mapped into IPv6 is the
    IPv4 address. Two texts are the same address when this is the same.

    Raises:
        MalformedName: it is no address. Kafka looks up host names where it takes addresses; we do not.

    """
    try:
        address = ip_address(text)
    except ValueError:
        raise MalformedName(text, "not an IP address") from None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    scope = "" if address.scope_id is None else f"%{address.scope_id}"
    groups = [int(group, 16) for group in address.packed.hex(":", 2).split(":")]
    return ":".join(f"{group:x}" for group in groups) + scope
