"""kill -9 of one rank: the status names it at once, also with torchrun."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import SOON_SECONDS, Stage, template
from cluster.reasons.timeline import ObservedChange, Predicate, says
from cluster.say import say
from cluster.torch_volume import TorchVolume

WORD = "rank {rank} is at work"
PLAIN = f"""
import os
print("rank", os.environ["RANK"], "is at work", flush=True)
{FOREVER}
"""
TRAINS = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(2))
print("rank", dist.get_rank(), "is at work", flush=True)
while True:
    dist.all_reduce(torch.ones(2))
    time.sleep(0.05)
"""
DIRECT: dict[str, object] = {"direct": {}}
TORCHRUN: dict[str, object] = {"torchrun": {}}


@dataclass(frozen=True)
class Job:
    """A job of two nodes with two ranks each, one of which is killed."""

    name: str
    launcher: dict[str, object]
    script: str
    rank: int


JOBS = (
    Job("plain-direct", DIRECT, PLAIN, 0),
    Job("torch-run", TORCHRUN, TRAINS, 2),
)


def all_at_work(stage: Stage, job: Job) -> bool:
    """Whether each rank has printed its line, which is part of the expected status."""
    logs = "".join(stage.jobs.log(f"{job.name}-{node}-0") for node in range(2))
    return all(WORD.format(rank=rank) in logs for rank in range(4))


def names_it(job: Job) -> Predicate:
    """Whether the status has the rank's end with all expected details."""

    def is_it(seen: ObservedChange) -> bool:
        detail = first_detail(seen) if seen.kind == "Job" and seen.name == job.name else {}
        return (detail.get("rank"), detail.get("signal")) == (job.rank, 9)

    return is_it


def first_detail(seen: ObservedChange) -> Any:
    return next(iter(seen.status.get("ranks", {}).get("details", [])), {})


def test_killed_ranks_are_named(stage: Stage, torch_for_pods: TorchVolume) -> None:
    torch = {"volumeMounts": list(torch_for_pods.mounts), "env": list(torch_for_pods.env)}
    with_torch = template(torch, volumes=list(torch_for_pods.volumes))
    for job in JOBS:
        shape = {"nodes": 2, "procsPerNode": 2, "launcher": job.launcher}
        stage.apply(job.name, job.script, **shape, template=with_torch)
    for job in JOBS:
        stage.runs(job.name)
        stage.until(partial(all_at_work, stage, job))
    table = [kill_a_rank(stage, job) for job in JOBS]
    say("\n" + "\n".join(line for line, _ in table))
    slow = [line for line, seconds in table if seconds > SOON_SECONDS]
    assert not slow


def kill_a_rank(stage: Stage, job: Job) -> tuple[str, float]:
    """Kill it, and check the status; return a line of the table, and the seconds."""
    node = job.rank // 2
    pod = stage.started_pod(job.name, node)
    victim = machine.rank(pod, job.rank)
    began = stage.now()
    machine.kill(victim)
    named = stage.timeline.first(names_it(job))
    took = named.at - began
    detail, message = first_detail(named), named.status["message"]
    assert (detail["node"], detail["pod"]) == (node, f"{job.name}-{node}-0")
    assert detail["nodeName"] == pod["spec"]["nodeName"]
    assert detail["message"] == WORD.format(rank=job.rank)
    assert message.startswith(f"Rank {job.rank} on {job.name}-{node} was killed by SIGKILL"), message
    stage.timeline.first(says(job.name, "RankKilled", "Failed"))
    stage.jobs.run("delete", f"dtj/{job.name}", "--wait=false")
    line = f"{job.name:14} rank {job.rank} {took:5.2f} s {detail['nodeName']} {detail['message']!r}: {message}"
    return line, took
