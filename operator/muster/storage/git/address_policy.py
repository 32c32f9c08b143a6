"""Restrict the addresses of git hosts, so that jobs can't reach services in the operator's network."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


class AddressPolicy(StrEnum):
    """The allowed addresses. ANY: all addresses, for a process with the user's rights, in a pod or on a laptop.

    NAMED: public and private addresses except loopback and link-local, for a host that the administrator listed by
    name. PUBLIC: public addresses, for a host that the administrator allowed with `*`.
    """

    ANY = "Any"
    NAMED = "Named"
    PUBLIC = "Public"


class AddressRefused(OSError):
    """The address policy does not allow an address of the host."""


_NAT64 = IPv6Network("64:ff9b::/96")
_EC2 = IPv6Network("fd00:ec2::/32")
"""The IPv6 addresses of EC2's instance services, which provide credentials (EC2 User Guide, "Instance metadata")."""


def check_address(address: str, host: str, policy: AddressPolicy) -> None:
    """Raise `AddressRefused` if `policy` does not allow a connection to `host` at this address."""
    if policy is AddressPolicy.ANY:
        return
    for ip in _list_effective_addresses(address):
        if _is_local(ip):
            raise AddressRefused(f"{host} is a loopback, link-local or multicast address")
        if policy is AddressPolicy.PUBLIC and not ip.is_global:
            raise AddressRefused(
                f"{host} is in a private network; ask the operator's administrator to list this host by its name "
                "in tenancy[].gitHosts"
            )


def _list_effective_addresses(address: str) -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the address, and the IPv4 address that it contains, if any."""
    # Remove the zone, which is the name of an interface.
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return (ip,)
    embedded_ipv4 = ip.ipv4_mapped or ip.sixtofour or (IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
    if ip.ipv4_mapped is not None:
        return (ip.ipv4_mapped,)
    return (ip,) if embedded_ipv4 is None else (ip, embedded_ipv4)


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    is_ec2_service = isinstance(address, IPv6Address) and address in _EC2
    return (
        address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified or is_ec2_service
    )
