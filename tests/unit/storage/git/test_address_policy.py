"""The addresses from which the operator may fetch code."""

import pytest

from muster.storage.git.address_policy import AddressPolicy, AddressRefused, check_address

OF_THIS_MACHINE = [
    "127.0.0.1",
    "::1",
    "0.0.0.0",  # noqa: S104
    "::",
    "169.254.169.254",
    "169.254.170.23",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "224.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
]
PRIVATE = ["10.0.0.1", "172.20.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]
PUBLIC = ["140.82.121.4", "2606:50c0:8000::154", "::ffff:140.82.121.4"]


def allowed(address: str, policy: AddressPolicy) -> bool:
    try:
        check_address(address, "git.example", policy)
    except AddressRefused:
        return False
    return True


@pytest.mark.parametrize("address", OF_THIS_MACHINE)
def test_what_only_this_machine_reaches_is_not_asked(address: str) -> None:
    assert [allowed(address, policy) for policy in (AddressPolicy.PUBLIC, AddressPolicy.NAMED, AddressPolicy.ANY)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_network_is_asked_for_hosts_that_are_listed_by_name(address: str) -> None:
    assert [allowed(address, policy) for policy in (AddressPolicy.PUBLIC, AddressPolicy.NAMED, AddressPolicy.ANY)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_network_is_asked(address: str) -> None:
    assert all(allowed(address, policy) for policy in AddressPolicy)


def test_what_to_do_is_said() -> None:
    with pytest.raises(AddressRefused, match=r"list this host by its name in tenancy\[\]\.gitHosts"):
        check_address("10.0.0.1", "git.example", AddressPolicy.PUBLIC)
