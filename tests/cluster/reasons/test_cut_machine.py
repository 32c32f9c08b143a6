"""A machine is cut off, first for 20 s and then until its nodes are lost. Side by side: jobs with each launcher, an
elastic job, and a job with a hot spare.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.elastic_job import ElasticJob
from cluster.reasons.launcher_parts import launcher_parts
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_disrupted_restarts import POLICY, is_in_phase
from cluster.reasons.test_lost_node import (
    LOST,
    NODE_LOST_SECONDS,
    SHORT_CUT_SECONDS,
    TOLERATION,
    is_silent,
    placed,
)
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.reasons.timeline import ObservedChange, Predicate
from cluster.say import say
from cluster.shared import Manifest
from cluster.torch_volume import TorchVolume
from muster.api.spec.failure_policy import MIN_FENCE_SECONDS

pytestmark = [pytest.mark.troubled, pytest.mark.timeout(500)]

LAUNCHERS = ("direct", "torchrun", "mpi")
STARTED_SECONDS = 60.0
"""The time for a pod to start and for its ranks to run."""

MAX_STARTS = 5
CODE = "/code"
HOST = "kubernetes.io/hostname"
TRAINS = f"""
import os, torch
print("rank", os.environ["RANK"], "of attempt", os.environ["MUSTER_ATTEMPT"], flush=True)
{FOREVER}
"""


@dataclass(frozen=True)
class CutJobs:
    """The jobs. `launched` and `spared` have their node 1 on the machine that is cut off."""

    launched: tuple[str, ...]
    elastic: ElasticJob
    spared: str

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.launched, self.elastic.name, self.spared)


@pytest.fixture(scope="module")
def jobs(stage: Stage, torch_for_pods: TorchVolume, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CutJobs]:
    folder = tmp_path_factory.mktemp("cut")
    launched = start_on_each_launcher(stage, torch_for_pods)
    spared = start_with_spare(stage, with_torch(torch_for_pods, folder))
    elastic = start_elastic_job(stage, folder / "checkpoint")
    for name in launched:
        runs(stage, name, 1)
        assert stage.started_pod(name, 1)["spec"]["nodeName"] == LOST
    result = CutJobs(launched, elastic, spared)
    yield result
    stage.jobs.run("delete", "dtj", *result.all, "--wait=false")


def start_on_each_launcher(stage: Stage, torch: TorchVolume) -> tuple[str, ...]:
    """Apply a job with each launcher. Return their names."""
    for launcher in LAUNCHERS:
        parts = launcher_parts(launcher, torch)
        spec = placed(
            failurePolicy=POLICY,
            launcher={launcher: {}},
            env=list(parts.env),
            template=template({"volumeMounts": list(parts.mounts)}, volumes=list(parts.volumes)),
        )
        stage.apply(f"parted-{launcher}", SAYS_ATTEMPT, **spec)
    return tuple(f"parted-{launcher}" for launcher in LAUNCHERS)


def start_with_spare(stage: Stage, pods: Callable[[str], Manifest]) -> str:
    """Start a job with a spare whose node 1 is alone on the machine. Return its name.

    The first pod that the scheduler places may be that of node 1, which it then places on node-1.
    """
    for number in range(MAX_STARTS):
        name = f"spared-{number}"
        stage.apply(
            name,
            nodes=2,
            launcher={"torchrun": {}},
            command=["python3", f"{CODE}/train.py"],
            failurePolicy=POLICY,
            spares=1,
            template=pods(name),
        )
        members = runs(stage, name, 1).status["members"]
        stage.timeline.first(spares_are_ready(name))
        if members == "0-1" and stage.started_pod(name, 1)["spec"]["nodeName"] == LOST:
            return name
        stage.jobs.run("delete", f"dtj/{name}")
    raise AssertionError(f"node 1 was on another machine {MAX_STARTS} times")


def with_torch(volume: TorchVolume, folder: Path) -> Callable[[str], Manifest]:
    """Return the template of a job, by its name. Its ranks run a file, which a fork server can read: it imports torch
    before the start. No other pod of the job is on the machine of its node 1.
    """
    (folder / "train.py").write_text(TRAINS, encoding="ascii")
    mounts = [*volume.mounts, {"name": "code", "mountPath": CODE, "readOnly": True}]
    volumes = [*volume.volumes, {"name": "code", "hostPath": {"path": str(folder)}}]
    wishes = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": [name]}]}}
        for name, weight in (("node-1", 100), (LOST, 50))
    ]

    def make(name: str) -> Manifest:
        labels = {"muster.dev/job": name, "muster.dev/node": "1"}
        alone = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
        affinity = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]},
        }
        trainer = {"volumeMounts": mounts, "env": list(volume.env)}
        return template(trainer, volumes=volumes, affinity=affinity, tolerations=[TOLERATION])

    return make


def start_elastic_job(stage: Stage, folder: Path) -> ElasticJob:
    """Start an elastic job with one pod on each of two machines. So a lost pod can't be replaced until its machine
    returns.
    """
    job = ElasticJob(stage, "parted-elastic", folder, nodes=2)
    apart = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"muster.dev/job": job.name}}}
    two = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["node-1", LOST]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [two]}},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
    }
    job.start("direct", affinity=affinity, tolerations=[TOLERATION])
    return job


def test_a_cut_of_20_s_restarts_nothing(stage: Stage, jobs: CutJobs) -> None:
    before = {name: uids(stage, name) for name in jobs.all}
    cut_at = stage.now()
    with machine.lost(LOST):
        for name in jobs.launched:
            stage.timeline.first(is_silent(name, "True", cut_at), MIN_FENCE_SECONDS)
        stage.until(lambda: stage.now() >= cut_at + SHORT_CUT_SECONDS)
    healed_at = stage.now()
    for name in jobs.launched:
        stage.timeline.first(is_silent(name, "False", healed_at))
    # TCP sends again after as long as the cut has lasted. With the next test's cut it would be a longer one.
    stage.until(lambda: stage.now() >= healed_at + SHORT_CUT_SECONDS)
    for name in jobs.all:
        status = stage.jobs.status(name)
        assert (status["phase"], status["attempt"], "restarts" in status) == ("Running", 1, False)
        assert uids(stage, name) == before[name]


def test_a_node_that_is_cut_off_stops_its_ranks_before_it_is_replaced(stage: Stage, jobs: CutJobs) -> None:
    elastic, names = jobs.elastic, jobs.launched
    before = {name: uids(stage, name) for name in jobs.all}
    elastic_node = find_node_on(stage, elastic.name, LOST)
    lost_ranks = {name: machine.rank(stage.started_pod(name, 1), 1) for name in names}
    elastic_rank = machine.rank(stage.started_pod(elastic.name, elastic_node), elastic_node)
    for name in names:
        stage.until(partial(answers, stage, f"{name}-1-0"))
    cut_at = stage.now()
    with machine.lost(LOST):
        for name in names:
            stage.until(partial(has_ended, lost_ranks[name]))
        stage.until(partial(has_ended, elastic_rank))
        fenced_at = stage.now()
        say(f"parted: the ranks of the lost node ended {fenced_at - cut_at:.1f} s after the cut")
        # The elastic job first, because its ranks make steps meanwhile. The timeline keeps the other jobs' changes.
        elastic.next_attempt()
        say(f"{elastic.name}: attempt 2 has begun {stage.now() - cut_at:.1f} s after the cut")
        for name in names:
            after = runs(stage, name, 2)
            assert fenced_at < after.at < cut_at + NODE_LOST_SECONDS + STARTED_SECONDS
            assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
            left = uids(stage, name)
            assert left[f"{name}-0-0"] == before[name][f"{name}-0-0"]
            assert f"{name}-1-1" in left
        # It needed no new pod.
        assert seconds_to_restart(stage, jobs.spared) < seconds_to_restart(stage, "parted-torchrun")
        spare_has_taken_the_place(stage, jobs.spared, before[jobs.spared])
    for name in names:
        stage.until(partial(has_pods, stage, name, {f"{name}-0-0", f"{name}-1-1"}))
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")
    elastic.next_attempt()
    grew_back(elastic, before[elastic.name], elastic_node)
    has_a_spare_again(stage, jobs.spared)


def spare_has_taken_the_place(stage: Stage, name: str, before: dict[str, str]) -> None:
    after = runs(stage, name, 2)
    assert after.status["members"] == "0,2"
    assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
    stage.jobs.wait_for_log(f"{name}-2-0", "rank 1 of attempt 2")
    left = uids(stage, name)
    assert all(left[pod] == before[pod] for pod in (f"{name}-0-0", f"{name}-2-0"))
    stage.until(lambda: f"{name}-1-1" in uids(stage, name))
    used = ["A spare takes the place of a node in attempt 2: node 2 for node 1"]
    stage.until(lambda: events(stage, name, "SpareUsed") == used)


def has_a_spare_again(stage: Stage, name: str) -> None:
    second, is_ready = runs(stage, name, 2), spares_are_ready(name)
    status = stage.timeline.first(lambda seen: seen.at > second.at and is_ready(seen)).status
    assert (status["phase"], status["attempt"], status["members"]) == ("Running", 2, "0,2")


def grew_back(job: ElasticJob, first_pods: dict[str, str], lost_node: int) -> None:
    """The job lost a node, continued with the other one, and then with a new pod of the lost node."""
    kept = 1 - lost_node
    assert job.members == ["0-1", str(kept), "0-1" if kept == 0 else "1,0"]
    status = job.stage.jobs.status(job.name)
    assert (status["phase"], status["attempt"]) == ("Running", 3)
    assert history(status) == [(1, "NodeLost", "Disruption", 1), (2, "Resized", "Nothing", 0)]
    pods = uids(job.stage, job.name)
    assert pods.keys() == {f"{job.name}-{kept}-0", f"{job.name}-{lost_node}-1"}
    assert pods[f"{job.name}-{kept}-0"] == first_pods[f"{job.name}-{kept}-0"]


def find_node_on(stage: Stage, name: str, kube_node: str) -> int:
    """Return the job's node whose pod is on this Kubernetes node."""
    return next(node for node in (0, 1) if stage.started_pod(name, node)["spec"]["nodeName"] == kube_node)


def answers(stage: Stage, pod: str) -> bool:
    """Whether the pod's agent has reached another node."""
    return "other nodes answer" in stage.jobs.log(pod)


def has_pods(stage: Stage, name: str, pods: set[str]) -> bool:
    return set(uids(stage, name)) == pods


def has_ended(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def spares_are_ready(name: str) -> Predicate:
    return lambda seen: seen.kind == "Job" and seen.name == name and seen.status.get("spares", {}).get("ready") == 1


def events(stage: Stage, name: str, reason: str) -> list[str]:
    value = stage.timeline.all(lambda seen: seen.kind == "Event" and seen.name == name and seen.type == "ADDED")
    return [seen.object["message"] for seen in value if seen.object["reason"] == reason]


def seconds_to_restart(stage: Stage, name: str) -> float:
    """Return the seconds from the decision that the node is lost until all ranks of the next attempt run."""

    def is_decided(seen: ObservedChange) -> bool:
        return is_in_phase(seen, name, "Stopping") and "is lost" in seen.status["message"]

    decided = stage.timeline.first(is_decided, NODE_LOST_SECONDS + 20.0)
    seconds = runs(stage, name, 2).at - decided.at
    say(f"{name}: all ranks run {seconds:.1f} s after the decision")
    return seconds
