"""The nodes' second network: pods with an interface on it, as with Multus, and its traffic."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from cluster import lan, packages, places
from cluster.shared import Kubectl

# The address range of pods on the fabric; the nodes' own are 10.79.0.11 and 10.79.0.12.
PODS = "10.79.0.{}/24"


def keeper(name: str) -> int:
    """Return a process in the node."""
    return int((places.state().node(name) / "keeper").read_bytes())


def ip(process: int, *arguments: str) -> str:
    """Run `ip` in the network of a process, with process ids of this machine."""
    tools = packages.provide()
    command = [tools.find("nsenter"), f"--net=/proc/{process}/ns/net", tools.find("ip"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dict(tools.environment)).stdout


def sent(interface: str) -> list[int]:
    """Return the bytes that each node has sent over one of its interfaces."""
    links = (json.loads(ip(keeper(node.name), "-s", "-j", "link", "show", interface)) for node in lan.NODES)
    return [int(link[0]["stats64"]["tx"]["bytes"]) for link in links]


def attach(pod: Any, processes: Sequence[int], host: int) -> None:
    """Give a pod of these processes an interface net1 on the fabric, like a second network of Multus."""
    node, made = keeper(pod["spec"]["nodeName"]), f"net{host}"
    inside = min(processes)  # its first process, which lives as long as the pod
    ip(node, "link", "add", made, "link", "fabric0", "type", "macvlan", "mode", "bridge")
    ip(node, "link", "set", made, "netns", str(inside), "name", "net1")
    ip(inside, "link", "set", "net1", "up")
    # Create this file last, because the pod waits for it.
    ip(inside, "addr", "add", PODS.format(host), "dev", "net1")


def waiting_pods(kubectl: Kubectl, namespace: str, job: str) -> Iterator[Any]:
    """Yield a job's pods, each when its first init container runs."""
    for name in (pod["metadata"]["name"] for pod in kubectl.list(namespace, "pods", f"muster.dev/job={job}")):
        running = "jsonpath={.status.initContainerStatuses[0].state.running.startedAt}"
        kubectl.wait(running, f"pod/{name}", f"--namespace={namespace}")
        yield json.loads(kubectl("get", "pod", name, f"--namespace={namespace}", "--output=json"))
