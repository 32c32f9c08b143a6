"""Finds and kills a container's processes from outside the cluster, and disconnects pods and nodes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import components, lan, node, packages, places
from support.sudden_kill import kill_at_once

INTERRUPTION = "aws-node-termination-handler/spot-itn"
"""The taint with which the AWS Node Termination Handler announces the end of a spot instance."""


def processes(pod: Any, container: str = "trainer") -> tuple[int, ...]:
    """Return this machine's ids of all processes of a pod's container, including its sub-groups."""
    return _processes(pod, "containerStatuses", container)


def init_processes(pod: Any, container: str) -> tuple[int, ...]:
    """Return this machine's ids of all processes of a running init container."""
    return _processes(pod, "initContainerStatuses", container)


def _processes(pod: Any, kind: str, container: str) -> tuple[int, ...]:
    status = next(each for each in pod["status"][kind] if each["name"] == container)
    group = status["containerID"].partition("://")[2]
    return tuple(int(folder.name) for folder in Path("/proc").glob("[0-9]*") if group in _text(folder / "cgroup"))


def rank(pod: Any, number: int) -> int:
    """Return the process of a rank: the latest one with its number in the environment."""
    wanted = {f"RANK={number}", f"OMPI_COMM_WORLD_RANK={number}"}
    result = [one for one in processes(pod) if wanted & _variables(one)]
    assert result, f"no process of rank {number} in {pod['metadata']['name']}"
    return max(result)


def find_rank(variable: str, number: int, inner_id: int) -> int | None:
    """Return the process of a rank, by a variable of its job and by its id in its pod; None if it has ended."""
    wanted = {f"RANK={number}", f"OMPI_COMM_WORLD_RANK={number}"}
    inside = f"\t{inner_id}\n"
    return next(
        (
            one
            for one in with_variable(variable)
            if wanted & _variables(one) and inside in _text(Path(f"/proc/{one}/status")).partition("NSpid:")[2]
        ),
        None,
    )


def with_variable(variable: str) -> list[int]:
    """Return this machine's ids of all processes with `NAME=value` in their environment."""
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if variable in _variables(int(folder.name))]


def kill(*wanted: int) -> None:
    """Kill with SIGKILL, as the kernel does."""
    for process in wanted:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue  # another kill has already ended the process


def kill_container(pod: Any) -> None:
    """Kill all processes of a pod's container at once, so that none reports the end of another."""
    kill_at_once(processes(pod))


@contextmanager
def cut_off(pod: Any) -> Iterator[None]:
    """Block all traffic from this pod to muster's collector, like a NetworkPolicy, which the CNI here doesn't
    enforce.
    """
    rule = ["FORWARD", "-p", "tcp", "-s", pod["status"]["podIP"], "-d", lan.HOST, "-j", "DROP"]
    _iptables(pod["spec"]["nodeName"], "--insert", *rule)
    try:
        yield
    finally:
        _iptables(pod["spec"]["nodeName"], "--delete", *rule)


@contextmanager
def stopped_kubelet(name: str) -> Iterator[None]:
    """Stop a machine's kubelet; its containers continue."""
    kubelet = [found.pid for found in components.marked() if found.name == f"{name}-kubelet"]
    assert kubelet, f"{name} has no kubelet"
    for process in kubelet:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in kubelet:
            os.kill(process, signal.SIGCONT)


@contextmanager
def lost(name: str) -> Iterator[None]:
    """Disconnect a machine from all others and stop its kubelet; its ranks continue."""
    rules = [
        (chain, direction, link)
        for chain, directions in (("INPUT", ("-i",)), ("OUTPUT", ("-o",)), ("FORWARD", ("-i", "-o")))
        for direction in directions
        for link in ("eth0", "fabric0")
    ]
    with stopped_kubelet(name):
        for rule in rules:
            _iptables(name, "--insert", *rule, "-j", "DROP")
        try:
            yield
        finally:
            for rule in rules:
                _iptables(name, "--delete", *rule, "-j", "DROP")


def _iptables(name: str, *arguments: str) -> None:
    tools = packages.provide()
    keeper = int((places.state().node(name) / "keeper").read_bytes())
    command = node.enter(keeper, [tools.find("iptables"), "--wait", *arguments])
    subprocess.run(command, check=True, env=dict(tools.environment))


def _variables(process: int) -> set[str]:
    return set(_text(Path(f"/proc/{process}/environ")).split("\0"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # the process has ended in the meantime, or belongs to another user
