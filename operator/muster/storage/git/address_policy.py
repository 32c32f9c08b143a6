"""The addresses to which the operator may connect for a job's git host: jobs must not reach the operator's network."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


class AddressPolicy(StrEnum):
    """ANY: all addresses, because the process has the user's rights, in a pod or on the user's machine.

    NAMED: public and private addresses, but no loopback or link-local ones, for a host that the administrator listed by
    name. PUBLIC: only public addresses, for a host that the administrator allowed by `*`.
    """

    ANY = "Any"
    NAMED = "Named"
    PUBLIC = "Public"


class AddressRefused(OSError):
    """The host has an address to which muster does not connect."""


_NAT64 = IPv6Network("64:ff9b::/96")
_EC2 = IPv6Network("fd00:ec2::/32")
"""Amazon EC2 User Guide, "Instance metadata": an instance's IPv6 services, which provide its credentials."""


def check_address(address: str, host: str, policy: AddressPolicy) -> None:
    """Raise `AddressRefused` if connecting to `host` at this address is not allowed."""
    if policy is AddressPolicy.ANY:
        return
    for effective in _effective_addresses(address):
        if _is_of_this_machine(effective):
            raise AddressRefused(f"{host} is a loopback, link-local or multicast address")
        if policy is AddressPolicy.PUBLIC and not effective.is_global:
            raise AddressRefused(
                f"{host} is in a private network; ask the operator's administrator to list this host by its name "
                "in tenancy[].gitHosts"
            )


def _effective_addresses(address: str) -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the address, and the IPv4 address that it contains."""
    # remove the zone, which is an interface of this machine
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return (parsed,)
    embedded = (
        parsed.ipv4_mapped or parsed.sixtofour or (IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _NAT64 else None)
    )
    if parsed.ipv4_mapped is not None:
        return (parsed.ipv4_mapped,)
    return (parsed,) if embedded is None else (parsed, embedded)


def _is_of_this_machine(address: IPv4Address | IPv6Address) -> bool:
    is_of_ec2 = isinstance(address, IPv6Address) and address in _EC2
    return address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified or is_of_ec2
