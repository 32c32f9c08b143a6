"""A node: namespaces held by a keeper process, and in them containerd, kubelet and kube-proxy."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import components, lan, node_files
from cluster.components import Component
from cluster.packages import Tools
from cluster.places import State
from cluster.programs import Programs
from cluster.say import CannotGoOn

KEEPER = Path(__file__).with_name("keeper.py")
SWITCH = "switch"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


@dataclass(frozen=True)
class Machine:
    """The machine's programs and tools, and the cluster's folder."""

    programs: Programs
    tools: Tools
    state: State

    def start(self, name: str, command: Sequence[str]) -> Component:
        """Start a component with the tools on its path."""
        return components.start(name, command, self.state, self.tools.environment)

    def ip(self, batch: str, process: int | None = None) -> None:
        """Run `ip` commands, on the machine or in the network of a process."""
        inside = [] if process is None else [self.tools.find("nsenter"), f"--net=/proc/{process}/ns/net"]
        command = [*inside, self.tools.find("ip"), "-batch", "-"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, input=batch)
        if done.returncode != 0:
            raise CannotGoOn(f"the cluster's network can't be set up: {done.stderr.strip()}")


def enter(process: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs `command` in the node whose keeper is `process`.

    It does not use `ip netns exec`, which mounts another /sys, in which the kubelet finds no cgroups.
    """
    return ["nsenter", f"--target={process}", "--mount", "--pid", "--net", "--uts", "--", *command]


def start_switch(machine: Machine) -> int:
    """Create the namespace of the bridges; return a process in it."""
    command = [machine.tools.find("unshare"), "--net", "sleep", "infinity"]
    process = machine.start(SWITCH, command).process.pid
    wait_for_namespace(process)
    return process


def wait_for_namespace(process: int) -> None:
    """Wait until `process` has left the machine's network; `unshare` takes a millisecond for it."""
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{process}/ns/net").readlink() == own:
        pass


def start_keeper(machine: Machine, node: lan.Node) -> int:
    """Create a node's namespaces; return the keeper's process id."""
    folder = machine.state.node(node.name)
    folder.mkdir(parents=True)
    unshare = [machine.tools.find("unshare"), "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts"]
    command = [*unshare, sys.executable, "-I", str(KEEPER), node.name, str(folder)]
    started = components.start(node.name, command, machine.state, machine.tools.environment, subprocess.PIPE)
    output = started.process.stdout
    line = output.readline().strip() if output else b""
    if not line:
        started.process.wait()
        started.check()
    # For commands that enter the node later.
    (folder / "keeper").write_bytes(line)
    return int(line)


def write_files(machine: Machine, node: lan.Node) -> None:
    """Write the configuration of all components of the node."""
    folder = machine.state.node(node.name)
    (folder / "cni").mkdir(parents=True, exist_ok=True)
    (folder / "cni" / "10-muster.conflist").write_text(node_files.cni(node), encoding="utf-8")
    for name, text in (
        ("containerd.toml", node_files.containerd(folder, machine.tools.cni)),
        ("kubelet.yaml", node_files.kubelet(node, machine.state)),
        ("resolv.conf", node_files.resolver()),
        ("kube-proxy.yaml", node_files.kube_proxy(node, machine.state)),
    ):
        (folder / name).write_text(text, encoding="utf-8")


def start_containerd(machine: Machine, node: lan.Node, keeper: int) -> Component:
    """Start containerd; its socket appears a little later."""
    config = machine.state.node(node.name) / "containerd.toml"
    command = [machine.tools.find("containerd"), "--config", str(config), "--log-level=warn"]
    return machine.start(f"{node.name}-containerd", enter(keeper, command))


def start_kubelet(machine: Machine, node: lan.Node, keeper: int) -> Component:
    """Start the kubelet."""
    command = [
        machine.programs["kubelet"],
        f"--config={machine.state.node(node.name) / 'kubelet.yaml'}",
        f"--kubeconfig={machine.state.keys / node.name}.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]
    return machine.start(f"{node.name}-kubelet", enter(keeper, command))


def start_kube_proxy(machine: Machine, node: lan.Node, keeper: int) -> Component:
    """Start kube-proxy."""
    command = [
        machine.programs["kube-proxy"],
        f"--config={machine.state.node(node.name) / 'kube-proxy.yaml'}",
    ]
    return machine.start(f"{node.name}-kube-proxy", enter(keeper, command))


def load_image(machine: Machine, keeper: int, archive: Path) -> None:
    """Load an image into a node. Raises CannotGoOn with containerd's message."""
    done = ctr(machine, keeper, "images", "import", str(archive))
    if done.returncode != 0:
        raise CannotGoOn(f"containerd didn't take {archive}: {(done.stdout + done.stderr).strip()}")


def has_image(machine: Machine, keeper: int, name: str) -> bool:
    """Whether a node has an image with that name."""
    return name in ctr(machine, keeper, "images", "list", "--quiet").stdout.split()


def ctr(machine: Machine, keeper: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run containerd's own command, in the kubelet's namespace of containers."""
    command = [machine.tools.find("ctr"), "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", *arguments]
    environment = dict(machine.tools.environment)
    return subprocess.run(enter(keeper, command), check=False, capture_output=True, text=True, env=environment)
