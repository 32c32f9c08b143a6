"""Nodes with separate networks: each is a process in a network namespace; its links are removed with it."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Self

import pytest

_LINKS = itertools.count()


def need_namespaces() -> None:
    """Skip the test if the machine allows no namespaces; on CI that is a failure."""
    if os.geteuid() == 0 and shutil.which("ip") and shutil.which("nsenter"):
        return
    reason = "network namespaces need root and iproute2"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class NetworkNode:
    """A network namespace. At first it has only `eth0`, which connects it to this machine's `gateway`."""

    def __init__(self, number: int) -> None:
        # 198.18.0.0/15 is reserved for network tests (RFC 2544); each test process uses a part of it
        base = f"198.{18 + os.getpid() % 2}.{os.getpid() // 2 % 256}"
        self.gateway, self.address = f"{base}.{4 * number + 1}", f"{base}.{4 * number + 2}"
        self._process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=-1)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._outer = f"mt{os.getpid()}-{next(_LINKS)}"[-15:]
        _run_ip(f"link add {self._outer} type veth peer name eth0 netns {self.process}")
        _run_ip(f"addr add {self.gateway}/30 dev {self._outer}", f"link set {self._outer} up")
        self.run_ip("link set lo up", f"addr add {self.address}/30 dev eth0", "link set eth0 up")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # The kernel keeps a namespace, and with it this link and its addresses, while a closed connection in it still
        # tries to send its last data: for minutes, where the node was cut off.
        _run_ip(f"link del {self._outer}")
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def process(self) -> int:
        return self._process.pid

    @property
    def within(self) -> tuple[str, ...]:
        """The command prefix that runs a command in this node's network."""
        # /sys shows the interfaces of the namespace in which it was mounted
        network = f"--net=/proc/{self.process}/ns/net"
        return ("nsenter", network, "unshare", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh")

    def run_ip(self, *commands: str) -> None:
        """Run `ip` commands in this node."""
        _run_ip(*commands, within=("nsenter", f"--net=/proc/{self.process}/ns/net"))

    def connect(self, other: "NetworkNode", name: str, *addresses: tuple[str, str]) -> None:
        """Connect another node by a cable: an interface `name` on both, with an address of each pair."""
        _run_ip(f"link add {name} netns {self.process} type veth peer name {name} netns {other.process}")
        for end, index in ((self, 0), (other, 1)):
            # without duplicate address detection for IPv6
            added = (f"addr add {pair[index]} dev {name} {'nodad' if ':' in pair[index] else ''}" for pair in addresses)
            end.run_ip(f"link set {name} up", *added)

    def read_sent_bytes(self, name: str) -> int:
        """Return the value of the interface's counter."""
        path = f"/sys/class/net/{name}/statistics/tx_bytes"
        return int(subprocess.run([*self.within, "cat", path], check=True, capture_output=True, text=True).stdout)


def _run_ip(*commands: str, within: Sequence[str] = ()) -> None:
    done = subprocess.run(
        [*within, "ip", "-batch", "-"], check=False, capture_output=True, text=True, input="\n".join(commands) + "\n"
    )
    assert done.returncode == 0, f"{commands}: {done.stderr}"
