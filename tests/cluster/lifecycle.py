"""Starts and stops the cluster: the order of its components, and the removal of everything."""

import contextlib
import datetime as dt
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import (
    cgroups,
    components,
    control_plane,
    credentials,
    debian,
    images,
    interruption,
    lan,
    node,
    packages,
    places,
    programs,
    waiting,
)
from cluster.components import Component, FoundComponent
from cluster.images import Image
from cluster.node import Machine
from cluster.places import State
from cluster.say import CannotGoOn, say

COMPONENTS = frozenset(
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", node.SWITCH]
    + [f"{each.name}{part}" for each in lan.ALL_NODES for part in ("", "-containerd", "-kubelet", "-kube-proxy")]
)
# The kernel needs a moment to end a node's processes and to remove their cgroups.
DYING_SECONDS = 30.0


def prepare(state: State) -> tuple[Machine, tuple[Image, ...]]:
    """Build and download everything: the programs of the machine, and the images to load."""
    with places.alone_in_cache():
        tools = packages.provide()
        with ThreadPoolExecutor(max_workers=1) as pool:
            base = pool.submit(debian.provide, tools)
            built = programs.build()
            return Machine(built, tools, state), (images.pause_image(built), images.python_image(base.result()))


def up(state: State, denial_seconds: int) -> None:
    """Start the cluster; after a failure or an interruption only the logs remain."""
    machine, loaded = prepare(state)
    begun = time.monotonic()
    try:
        with contextlib.ExitStack() as stack:
            archives = tuple(stack.enter_context(images.archive(image)) for image in loaded)
            bring_up(machine, archives, denial_seconds)
            interruption.check()
    except BaseException:
        say("the start failed or was interrupted; taking down what there is")
        down(state, keep=state.logs)
        raise
    say(f"all nodes are ready, after {time.monotonic() - begun:.1f} s")


def bring_up(machine: Machine, archives: tuple[Path, ...], denial_seconds: int) -> None:
    """Start the networks first, because the control plane listens there; load images while the control plane starts."""
    state = machine.state
    shutil.rmtree(state.folder, ignore_errors=True)
    state.folder.mkdir(parents=True, mode=0o700)
    keepers = start_network(machine)
    credentials.write(state, dt.datetime.now(dt.UTC))
    (state.folder / "audit-policy.yaml").write_text(control_plane.AUDIT_POLICY, encoding="utf-8")
    (state.folder / "Corefile").write_text(control_plane.corefile(state, denial_seconds), encoding="utf-8")
    for each in lan.ALL_NODES:
        node.write_files(machine, each)
        cgroups.make(each.name)
    with ThreadPoolExecutor() as pool:
        loaded = [pool.submit(start_containerd, machine, each, keepers[each], archives) for each in lan.ALL_NODES]
        start_control_plane(machine)
        for image in loaded:
            image.result()
    start_nodes(machine, keepers)


def start_network(machine: Machine) -> dict[lan.Node, int]:
    """Create bridges, nodes and the cables between them; return the keeper of each node."""
    switch = node.start_switch(machine)
    machine.ip(lan.host_commands(switch))
    machine.ip(lan.switch_commands(), switch)
    keepers = {}
    for each in lan.ALL_NODES:
        keeper = keepers[each] = node.start_keeper(machine, each)
        machine.ip(lan.cable_commands(each, keeper), switch)
        machine.ip(lan.node_commands(each), keeper)
    return keepers


def start_containerd(machine: Machine, each: lan.Node, keeper: int, archives: tuple[Path, ...]) -> None:
    """Start a node's containerd, and load the images."""
    started = node.start_containerd(machine, each, keeper)
    # The node's /run, seen through its first process.
    socket = Path(f"/proc/{keeper}/root{node.CONTAINERD_SOCKET}")
    waiting.until(socket.exists, started, f"the socket of {started.name}")
    for archive in archives:
        node.load_image(machine, keeper, archive)


def start_control_plane(machine: Machine) -> None:
    """Start etcd, the API server and its clients; return when the API server serves and the controllers work."""
    built, state = machine.programs, machine.state
    machine.start("etcd", control_plane.etcd(built, state))
    server = machine.start("kube-apiserver", control_plane.api_server(built, state))
    authority = state.keys / "authority.crt"
    waiting.until(waiting.serves(control_plane.ready_url(), authority), server, "the API server")
    controllers = machine.start("kube-controller-manager", control_plane.controller_manager(built, state))
    machine.start("kube-scheduler", control_plane.scheduler(built, state))
    dns = machine.start("coredns", control_plane.dns(built, state))
    # The API server refuses pods before their namespace has its service account.
    waiting.wait_for(kubectl(machine), "create", ["serviceaccount/default"], controllers)
    waiting.until(waiting.serves(f"http://{lan.HOST}:8181/ready"), dns, "the cluster's DNS")


def start_nodes(machine: Machine, keepers: dict[lan.Node, int]) -> None:
    """Start kubelets and kube-proxies; return when all nodes are ready for pods."""
    kubelets: dict[lan.Node, Component] = {}
    proxies: dict[lan.Node, Component] = {}
    for each, keeper in keepers.items():
        kubelets[each] = node.start_kubelet(machine, each, keeper)
        proxies[each] = node.start_kube_proxy(machine, each, keeper)
    for each in keepers:
        waiting.wait_for(kubectl(machine), "create", [f"node/{each.name}"], kubelets[each])
        waiting.wait_for(kubectl(machine), "condition=Ready", [f"node/{each.name}"], kubelets[each])
        waiting.until(waiting.serves(f"http://{each.address}:10256/healthz"), proxies[each], proxies[each].name)


def kubectl(machine: Machine) -> list[str]:
    """kubectl as the administrator."""
    return [machine.programs["kubectl"], f"--kubeconfig={machine.state.kubeconfig}"]


def down(state: State, keep: Path | None = None) -> None:
    """Stop the cluster, from any state. `keep` is a folder of it that remains.

    Namespaces do most of the work: all processes of a node end with its first process, and its mounts and interfaces
    with those.
    """
    with interruptions_later():
        left = components.kill(components.marked(), DYING_SECONDS)
        if left:
            raise CannotGoOn(f"these processes don't die: {', '.join(f'{found.name} ({found.pid})' for found in left)}")
        # The kernel removes it a moment after the namespace at its other end, and the next start must not find it.
        if Path(f"/sys/class/net/{lan.HOST_LINK}").exists():
            subprocess.run(["ip", "link", "del", lan.HOST_LINK], check=False, capture_output=True)
        cgroups.remove(DYING_SECONDS)
        remove_folder(state, keep)


@contextlib.contextmanager
def interruptions_later() -> Iterator[None]:
    """Delay Ctrl-C, so that a second one does not interrupt the cleanup of the first."""
    with contextlib.ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, signal.SIG_IGN))
        yield


def remove_folder(state: State, keep: Path | None) -> None:
    """Remove the cluster's files. If a mount remains among them, remove nothing, because it could lead out of the
    folder.
    """
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    inside = [mount for mount in mounts if Path(mount).is_relative_to(state.folder)]
    if inside:
        raise CannotGoOn(f"something is mounted in the cluster's folder; unmount it first: {' '.join(inside)}")
    if not state.folder.exists():
        return
    for entry in state.folder.iterdir():
        if entry == keep:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if keep is None or not keep.exists():
        state.folder.rmdir()


def running() -> list[FoundComponent]:
    """Return the cluster's processes, by name."""
    return sorted(components.marked(), key=lambda result: result.name)
