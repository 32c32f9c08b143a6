import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.validation.rules import interfaces as forms
from muster_worker.contract.network import MAX_LINKS, Link
from muster_worker.network.interface_choice import (
    Interface,
    InterfaceChoice,
    NoInterface,
    choose_interface,
    find_choice_by_address,
)
from support.rows import check_rows

LO = Interface("lo", ("127.0.0.1/8", "::1/128"), loopback=True)
ETH0 = Interface("eth0", ("10.0.0.5/16",), speed_mbps=10_000)
ETH1 = Interface("eth1", ("10.0.1.5/16",), speed_mbps=100_000)
ETH10 = Interface("eth10", ("10.0.10.5/16",), speed_mbps=25_000)
EFA = Interface("ens1", ("10.0.2.5/16",), speed_mbps=1_000, rdma=True)
OTHER = Interface("eth2", ("192.168.7.5/24",), speed_mbps=400_000, rdma=True)
DOCKER = Interface("docker0", ("172.17.0.1/16",))
DOWN = Interface("eth3", ("10.0.3.5/16",), up=False)
BARE = Interface("eth4")
SIX = Interface("six0", ("2001:db8::5/64",))
BOTH = Interface("both0", ("2001:db8::6/64", "10.9.0.1/24"))
MANY = Interface("many0", ("10.3.0.1/24", "10.4.0.1/24", "10.3.0.2/24", "fd00::1/64", "fd01::1/64"))
LINK_LOCAL = Interface("nvs0", ("169.254.4.1/16",), speed_mbps=900_000)
MULTUS = Interface("net1", ("10.79.0.5/16",), speed_mbps=25_000)


CHOICE_ROWS: list[tuple[str, tuple[Interface, ...], str | None, str]] = [
    ("Auto", (LO, ETH0, DOCKER), "eth0", "eth0"),
    ("Auto", (LO, ETH0), "lo", "lo"),
    ("Auto", (LO, ETH0, ETH1), "eth0", "eth1"),  # the same network, faster
    ("Auto", (ETH0, ETH1, EFA), "eth0", "ens1"),  # the same network, EFA
    ("Auto", (ETH0, OTHER), "eth0", "eth0"),  # a better card, which is used once all nodes have it
    ("Auto", (LO, DOCKER, ETH0), None, "eth0"),
    ("Auto", (LO, DOWN, BARE, ETH0), None, "eth0"),
    ("Auto", (DOCKER, ETH0), "docker0", "eth0"),
    ("Auto", (LO, LINK_LOCAL, ETH0), None, "eth0"),
    ("Auto", (LO, ETH0, MULTUS), "eth0", "eth0"),
    ("eth1", (ETH0, ETH1), "eth0", "eth1"),
    ("eth1", (ETH10, ETH1), "eth0", "eth1"),  # a name is no prefix
    ("eth7,eth0", (ETH0, ETH1), None, "eth0"),
    ("eth3,eth0", (DOWN, ETH0), None, "eth0"),
    ("lo", (LO, ETH0), "eth0", "lo"),
    ("docker0", (DOCKER, ETH0), "eth0", "docker0"),
    ("eth*", (LO, ETH0, ETH1, ETH10), "eth0", "eth1"),  # the best of them
    ("eth1*", (ETH0, ETH10, ETH1), "eth0", "eth1"),
    ("ens*,eth*", (ETH0, ETH1), "eth0", "eth1"),
    ("ens*,eth*", (ETH1, EFA), "eth1", "ens1"),
    ("net*", (ETH0, MULTUS), "eth0", "net1"),
    ("l*,eth0", (LO, ETH0), "eth0", "eth0"),  # only its own name selects the loopback
    ("^eth1,lo", (LO, ETH0, ETH1), "eth0", "eth0"),
    ("^eth1", (ETH0, ETH1, ETH10), "eth0", "eth0"),  # prefixes follow ^, as for NCCL
    ("^eth1*", (ETH0, ETH1, ETH10), "eth0", "eth0"),
    ("^lo", (LO, ETH0), "lo", "eth0"),
    ("^eth0", (ETH0, OTHER), "eth0", "eth2"),
    ("192.168.0.0/16", (ETH0, OTHER), "eth0", "eth2"),
    ("10.0.0.0/8", (LO, ETH0, ETH1), "eth0", "eth1"),  # the best of them
    ("127.0.0.0/8", (LO, ETH0), "eth0", "lo"),
    ("0.0.0.0/0", (LO, ETH0), "lo", "eth0"),
    ("2001:db8::/32", (ETH0, SIX), "eth0", "six0"),
    ("::/0", (ETH0, LO, SIX), "eth0", "six0"),
]


def test_choice() -> None:
    def check(wanted: str, interfaces: tuple[Interface, ...], routed: str | None, name: str) -> None:
        choice = choose_interface(wanted, interfaces, routed)
        assert isinstance(choice, InterfaceChoice)
        assert choice.name == name

    check_rows(CHOICE_ROWS, lambda row: check(*row))


@pytest.mark.parametrize(
    ("wanted", "interface", "address", "why"),
    [
        ("Auto", BOTH, "10.9.0.1", "the best that is up"),
        ("Auto", SIX, "2001:db8::5", "the best that is up"),
        ("10.3.0.0/24", MANY, "10.3.0.1", "its address is in 10.3.0.0/24"),
        (
            "10.4.0.0/16",
            MANY,
            "10.4.0.1",
            "its address is in 10.4.0.0/16, but NCCL and gloo use the interface's first address, 10.3.0.1",
        ),
        (
            "fd00::/16",
            MANY,
            "fd00::1",
            "its address is in fd00::/16, but gloo uses the interface's first address, 10.3.0.1",
        ),
    ],
)
def test_which_of_several_addresses(wanted: str, interface: Interface, address: str, why: str) -> None:
    choice = choose_interface(wanted, (interface,), None)
    assert isinstance(choice, InterfaceChoice)
    assert (choice.address, choice.reason) == (address, why)
    assert choice.links[0].address.split("/")[0] == address


@pytest.mark.parametrize(
    ("wanted", "interfaces", "why"),
    [
        ("Auto", (ETH0,), "on the route to the operator, 10000 Mbit/s"),
        ("Auto", (ETH0, EFA), "on the route to the operator, EFA or InfiniBand, 1000 Mbit/s"),
        ("^ens", (ETH0, EFA), "on the route to the operator, 10000 Mbit/s"),
        ("eth0", (ETH0,), "named by the job"),
        ("et*", (ETH0,), "its name matches et*"),
    ],
)
def test_why(wanted: str, interfaces: tuple[Interface, ...], why: str) -> None:
    choice = choose_interface(wanted, interfaces, "eth0")
    assert isinstance(choice, InterfaceChoice)
    assert choice.reason == why


@pytest.mark.parametrize(
    ("wanted", "links"),
    [
        ("Auto", ("eth0", "eth2", "net1")),
        ("^net", ("eth0", "eth2")),
        ("eth*", ("eth2", "eth0")),
        ("0.0.0.0/0", ("eth2", "net1", "eth0", "docker0", "lo")),
        ("eth0", ("eth0",)),
        ("lo", ("lo",)),
    ],
)
def test_what_the_job_leaves_open(wanted: str, links: tuple[str, ...]) -> None:
    choice = choose_interface(wanted, (LO, DOCKER, ETH0, OTHER, MULTUS), "eth0")
    assert isinstance(choice, InterfaceChoice)
    assert tuple(link.interface for link in choice.links) == links


def test_an_operator_on_this_machine_leaves_nothing_open() -> None:
    choice = choose_interface("Auto", (LO, ETH0), "lo")
    assert isinstance(choice, InterfaceChoice)
    assert choice.links == (Link("lo", "127.0.0.1/8", to_operator=True),)


def test_where_all_nodes_meet() -> None:
    links = (Link("eth0", "10.0.0.5/16", 10_000), Link("net1", "10.79.0.5/16", 25_000, rdma=True))
    choice = find_choice_by_address(links, "10.79.0.5")
    why = "all nodes of the job are on its network 10.79.0.0/16, EFA or InfiniBand, 25000 Mbit/s"
    assert choice == InterfaceChoice("net1", "10.79.0.5", why, 25_000, links)
    assert find_choice_by_address(links, "10.79.0.6") is None


def test_where_all_nodes_meet_away_from_the_operator() -> None:
    choice = find_choice_by_address(
        (Link("eth0", "10.0.0.5/16", 10, to_operator=True), Link("net1", "10.79.0.5/16", 10)), "10.79.0.5"
    )
    assert choice is not None
    value = (
        "all nodes of the job are on its network 10.79.0.0/16, 10 Mbit/s; "
        "eth0, on the route to the operator, is equally fast"
    )
    assert choice.reason == value


@pytest.mark.parametrize("wanted", ["eth7", "ib*", "10.99.0.0/16", "^eth,docker,lo", "eth3", "fd00::/8"])
def test_a_problem_lists_what_there_is(wanted: str) -> None:
    choice = choose_interface(wanted, (LO, ETH0, DOWN), "eth0")
    assert isinstance(choice, NoInterface)
    assert "spec.network.interface" in choice.problem
    assert wanted in choice.problem
    assert "eth0 (10.0.0.5/16, up)" in choice.problem
    assert "eth3 (10.0.3.5/16, down)" in choice.problem


NAMES = st.sampled_from(["lo", "eth0", "eth1", "eth10", "ens1", "docker0", "ib0", "net1"])
ADDRESSES = st.one_of(
    st.builds(lambda host, length: f"10.{host}.0.7/{length}", st.integers(0, 255), st.integers(8, 32)),
    st.builds(lambda host: f"fd00:{host:x}::7/64", st.integers(0, 255)),
)
INTERFACES = st.lists(
    st.builds(
        Interface,
        name=NAMES,
        addresses=st.lists(ADDRESSES, max_size=3, unique=True).map(tuple),
        up=st.booleans(),
        loopback=st.just(value=False),
        rdma=st.booleans(),
        speed_mbps=st.sampled_from([0, 1_000, 10_000]),
    ),
    max_size=24,
    unique_by=lambda interface: interface.name,
)
WANTED = st.sampled_from(
    ["Auto", "eth1", "eth1,ib0", "eth*", "e*,net1", "^docker,lo", "^eth1", "10.0.0.0/9", "fd00::/9"]
)


def _fits(wanted: str, name: str, address: str) -> bool:
    if wanted == "Auto":
        return True
    if wanted.startswith("^"):
        return not name.startswith(tuple(wanted[1:].split(",")))
    if "/" in wanted:
        network, own = ipaddress.ip_network(wanted), ipaddress.ip_address(address)
        return own.version == network.version and own in network
    entries = wanted.split(",")
    return any(name.startswith(entry[:-1]) if entry.endswith("*") else name == entry for entry in entries)


@given(WANTED, INTERFACES, st.none() | NAMES)
def test_every_link_is_there_up_and_fits(wanted: str, interfaces: list[Interface], routed: str | None) -> None:
    choice = choose_interface(wanted, interfaces, routed)
    if isinstance(choice, NoInterface):
        virtual = ("docker", "lo")
        left = [item for item in interfaces if item.up and item.addresses]
        if wanted == "Auto":
            assert all(item.name.startswith(virtual) for item in left)
        if wanted in {"eth1", "eth*"}:
            assert not any(_fits(wanted, item.name, "") for item in left)
        return
    by_name = {item.name: item for item in interfaces}
    assert choice.links[0].interface == choice.name
    assert choice.links[0].address.split("/")[0] == choice.address
    assert len(choice.links) <= MAX_LINKS
    for link in choice.links:
        assert by_name[link.interface].up
        assert link.address in by_name[link.interface].addresses
        assert _fits(wanted, link.interface, link.address.split("/")[0])


@given(st.from_regex(forms.NAMES, fullmatch=True) | st.ip_addresses().map("{}/9".format), INTERFACES)
def test_every_value_that_the_resource_allows_is_understood(wanted: str, interfaces: list[Interface]) -> None:
    choice = choose_interface(wanted, interfaces, None)
    assert isinstance(choice, InterfaceChoice) or f"fits {wanted}" in choice.problem


@given(WANTED, INTERFACES, st.none() | NAMES, st.randoms(use_true_random=False))
def test_the_order_in_which_the_kernel_lists_them_changes_nothing(
    wanted: str, interfaces: list[Interface], routed: str | None, random: object
) -> None:
    shuffled = list(interfaces)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = choose_interface(wanted, interfaces, routed), choose_interface(wanted, shuffled, routed)
    assert isinstance(other, NoInterface) if isinstance(one, NoInterface) else one == other
