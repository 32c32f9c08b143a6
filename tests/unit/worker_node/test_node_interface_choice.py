import pytest

from muster_worker.interface_choice import Choice, Interface, NoChoice, choose

LO = Interface("lo", ("127.0.0.1/8",), loopback=True)
ETH0 = Interface("eth0", ("10.0.0.5/16",), speed_mbps=10_000)
ETH1 = Interface("eth1", ("10.0.1.5/16",), speed_mbps=100_000)
EFA = Interface("ens1", ("10.0.2.5/16",), speed_mbps=1_000, rdma=True)
OTHER = Interface("eth2", ("192.168.7.5/24",), speed_mbps=400_000, rdma=True)
DOCKER = Interface("docker0", ("172.17.0.1/16",))
DOWN = Interface("eth3", ("10.0.3.5/16",), up=False)
BARE = Interface("eth4")
SIX = Interface("six0", ("2001:db8::5/64",))
BOTH = Interface("both0", ("2001:db8::6/64", "10.9.0.1/24"))


@pytest.mark.parametrize(
    ("wanted", "interfaces", "routed", "name"),
    [
        ("Auto", (LO, ETH0, DOCKER), "eth0", "eth0"),
        ("Auto", (LO, ETH0), "lo", "lo"),
        ("Auto", (LO, ETH0, ETH1), "eth0", "eth1"),  # the same network, faster
        ("Auto", (ETH0, ETH1, EFA), "eth0", "ens1"),  # the same network, EFA
        ("Auto", (ETH0, OTHER), "eth0", "eth0"),  # a better card that doesn't lead there
        ("Auto", (LO, DOCKER, ETH0), None, "eth0"),
        ("Auto", (LO, DOWN, BARE, ETH0), None, "eth0"),
        ("Auto", (DOCKER, ETH0), "docker0", "eth0"),
        ("eth1", (ETH0, ETH1), "eth0", "eth1"),
        ("eth7,eth0", (ETH0, ETH1), None, "eth0"),
        ("eth3,eth0", (DOWN, ETH0), None, "eth0"),
        ("^eth1,lo", (LO, ETH0, ETH1), "eth0", "eth0"),
        ("^lo", (LO, ETH0), "lo", "eth0"),
        ("192.168.0.0/16", (ETH0, OTHER), "eth0", "eth2"),
        ("127.0.0.0/8", (LO, ETH0), "eth0", "lo"),
        ("2001:db8::/32", (ETH0, SIX), "eth0", "six0"),
    ],
)
def test_choice(wanted: str, interfaces: tuple[Interface, ...], routed: str | None, name: str) -> None:
    choice = choose(wanted, interfaces, routed)
    assert isinstance(choice, Choice)
    assert choice.name == name


def test_ipv4_before_ipv6() -> None:
    assert choose("Auto", (BOTH,), None) == Choice("both0", "10.9.0.1", "the best that is up")
    assert choose("Auto", (SIX,), None) == Choice("six0", "2001:db8::5", "the best that is up")


@pytest.mark.parametrize("wanted", ["eth7", "10.99.0.0/16", "^eth,docker,lo", "eth3"])
def test_a_problem_lists_what_there_is(wanted: str) -> None:
    choice = choose(wanted, (LO, ETH0, DOWN), "eth0")
    assert isinstance(choice, NoChoice)
    assert "spec.network.interface" in choice.problem
    assert wanted in choice.problem
    assert "eth0 (10.0.0.5/16, up)" in choice.problem
    assert "eth3 (10.0.3.5/16, down)" in choice.problem
