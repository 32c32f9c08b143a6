"""Which addresses the operator may connect to: jobs choose the host, but must not reach the operator's own network."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


class Reach(StrEnum):
    """ANY: the process connects with the user's own rights, in a pod or on the user's machine.

    NAMED: the administrator listed the host by name; it may be in a private network, but not at a loopback or
    link-local address. PUBLIC: the administrator allowed all hosts; only public addresses are meant.
    """

    ANY = "Any"
    NAMED = "Named"
    PUBLIC = "Public"


class AddressRefused(OSError):
    """The host has an address to which muster does not connect."""


_NAT64 = IPv6Network("64:ff9b::/96")
_EC2 = IPv6Network("fd00:ec2::/32")
"""Amazon EC2 User Guide, "Instance metadata": IPv6 services of each instance, including credentials."""


def check_address(address: str, host: str, reach: Reach) -> None:
    """Raise `AddressRefused` if connecting to `host` at this address is not allowed."""
    if reach is Reach.ANY:
        return
    for one in _meant(address):
        if _is_of_this_machine(one):
            raise AddressRefused(f"{host} is a loopback, link-local or multicast address")
        if reach is Reach.PUBLIC and not one.is_global:
            raise AddressRefused(
                f"{host} is in a private network; ask the operator's administrator to list this host by its name "
                "in tenancy[].gitHosts"
            )


def _meant(address: str) -> tuple[IPv4Address | IPv6Address, ...]:
    """The address, and the IPv4 address inside it."""
    # a zone names an interface of this machine
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return (parsed,)
    inside = (
        parsed.ipv4_mapped or parsed.sixtofour or (IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _NAT64 else None)
    )
    if parsed.ipv4_mapped is not None:
        return (parsed.ipv4_mapped,)
    return (parsed,) if inside is None else (parsed, inside)


def _is_of_this_machine(one: IPv4Address | IPv6Address) -> bool:
    is_of_ec2 = isinstance(one, IPv6Address) and one in _EC2
    return one.is_loopback or one.is_link_local or one.is_multicast or one.is_unspecified or is_of_ec2
