"""Jobs whose ranks hang, on a cluster: muster restarts the ranks in their pods, and their stacks are in the log."""

from cluster.muster_command import Muster
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_restarts import history
from cluster.reasons.timeline import ObservedChange
from cluster.torch_volume import TorchVolume

POLICY = {"maxRestarts": 1, "hangTimeoutSeconds": 8}

# torch aborts a process if gloo's threads still run at its end: see docs/reasons.md, RankFailed.
MISMATCH = """
import os
import torch
import torch.distributed as dist

def train(value, optimizer):
    rank, groups = dist.get_rank(), [dist.new_group(), dist.new_group()]
    for step in range(1, 8):
        is_wrong = step == 4 and os.environ["MUSTER_ATTEMPT"] == "1"
        dist.all_reduce(value, group=groups[rank if is_wrong else 0])
        optimizer.step()

value = torch.ones(1)
optimizer = torch.optim.SGD([torch.nn.Parameter(value)], 0.1)
dist.init_process_group("gloo")
train(value, optimizer)
dist.destroy_process_group()
"""


def succeeds(stage: Stage, name: str) -> ObservedChange:
    return stage.timeline.first(
        lambda seen: seen.kind == "Job" and seen.name == name and seen.status.get("phase") == "Succeeded"
    )


def test_two_ranks_in_different_collectives_are_restarted(stage: Stage, torch_for_pods: TorchVolume) -> None:
    name = "mismatch"
    torch = {"volumeMounts": list(torch_for_pods.mounts), "env": list(torch_for_pods.env)}
    with_torch = template(torch, volumes=list(torch_for_pods.volumes))
    shape: dict[str, object] = {"nodes": 2, "procsPerNode": 1, "launcher": {"torchrun": {}}}
    stage.apply(name, MISMATCH, **shape, failurePolicy=POLICY, template=with_torch)
    done = succeeds(stage, name)

    assert history(done.status) == [(1, "Hung", "Failure", 0)]
    (record,) = done.status["restarts"]["history"]
    assert (record["rank"], record["step"]) == (1, 3)
    assert (
        "was in all_reduce; it had not entered all_reduce 4 of process group 1, but rank 0 had; its last "
        "collective was all_reduce 1 of process group 2"
    ) in record["message"]
    shown = Muster(stage.kubectl.kubeconfig, stage.namespace)("stacks", name, "--rank", "1")
    header, *lines = shown.stdout.splitlines()
    assert header.startswith(f"rank 1 on {name}-1-0 has completed no step for "), shown
    assert header.endswith("(all_reduce); last collective: all_reduce 1 of process group 2, not completed")
    assert any("in all_reduce" in line for line in lines)
