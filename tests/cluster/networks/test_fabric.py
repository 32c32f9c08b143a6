"""Nodes and pods with a second network: the ranks' interface, by the status and by the interfaces' counters."""

from typing import Any

from cluster import lan
from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.networks import fabric
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.site import Site
from cluster.reasons import machine
from cluster.torch_volume import TorchVolume

SHARED = "all nodes of the job are on its network"
SENT = 16 << 20
REDUCE = f"""
import torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones({SENT} // 4)
dist.all_reduce(ones)
assert ones.sum() == 2 * ones.numel()
dist.destroy_process_group()
"""


ON_THE_MACHINES_NETWORK = {"hostNetwork": True}
LOOK = "until ip -o addr show dev net1 2>/dev/null | grep -q 'inet '; do sleep 0.1; done"
WAITING_FOR_A_SECOND_ONE = {
    "initContainers": [
        {"name": "wait", "image": PYTHON_IMAGE, "imagePullPolicy": PULL_POLICY, "command": ["sh", "-c", LOOK]}
    ]
}


def spec(torch: TorchVolume, pod: dict[str, Any]) -> dict[str, Any]:
    """Two nodes, one on each machine, with these pods."""
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, "volumeMounts": list(torch.mounts)}
    places = [{"kubernetes.io/hostname": node.name} for node in lan.NODES]
    return {
        "procsPerNode": 1,
        "env": [*torch.env, {"name": "OMP_NUM_THREADS", "value": "1"}],
        "network": {"interface": "Auto"},
        "template": {"spec": {**pod, "volumes": list(torch.volumes), "containers": [trainer]}},
        "nodeOverrides": [
            {"nodes": str(number), "template": {"spec": {"nodeSelector": place}}} for number, place in enumerate(places)
        ],
    }


def report_of(jobs: Jobs, name: str) -> dict[str, Any]:
    """Return the network in the status of the completed job."""
    jobs.wait(name, "condition=Complete")
    network: dict[str, Any] = jobs.status(name)["network"]
    return network


def test_ranks_on_the_machines_networks_talk_over_the_fabric(fabric_site: Site, torch_for_pods: TorchVolume) -> None:
    why = f"{SHARED} 10.79.0.0/24, 10000 Mbit/s; eth0, on the route to the operator, is equally fast"
    jobs = fabric_site.jobs
    before = fabric.sent("fabric0"), fabric.sent("eth0")
    jobs.apply("auto", REDUCE, **spec(torch_for_pods, ON_THE_MACHINES_NETWORK))
    network = report_of(jobs, "auto")
    assert network["groups"] == [
        {"interface": "fabric0", "speedMbps": 10_000, "message": why, "count": 2, "nodes": "0-1"},
    ], fabric_site.said
    assert [each["address"] for each in network["nodes"]] == [node.fabric_address for node in lan.NODES]
    after = fabric.sent("fabric0"), fabric.sent("eth0")
    assert all(now - then > SENT // 2 for now, then in zip(after[0], before[0], strict=True))
    # the agents' reports, and the kubelet's own
    assert all(now - then < SENT // 2 for now, then in zip(after[1], before[1], strict=True))


def test_pods_with_a_second_interface_talk_over_it(fabric_site: Site, torch_for_pods: TorchVolume) -> None:
    jobs = fabric_site.jobs
    before = fabric.sent("fabric0")
    jobs.apply("second", REDUCE, **spec(torch_for_pods, WAITING_FOR_A_SECOND_ONE))
    jobs.wait("second", "condition=Scheduled")
    for number, pod in enumerate(fabric.waiting_pods(jobs.kubectl, jobs.namespace, "second")):
        fabric.attach(pod, machine.init_processes(pod, "wait"), 100 + number)
    network = report_of(jobs, "second")
    assert [group["interface"] for group in network["groups"]] == ["net1"], fabric_site.said
    assert [each["address"] for each in network["nodes"]] == ["10.79.0.100", "10.79.0.101"]
    assert all(now - then > SENT // 2 for now, then in zip(fabric.sent("fabric0"), before, strict=True))
