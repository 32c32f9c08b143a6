"""Jobs with a failure policy whose pods or machines are taken away: each costs one pod, and the others stay."""

from functools import partial
from pathlib import Path

import pytest

from cluster.reasons import machine
from cluster.reasons.elastic_job import ElasticJob
from cluster.reasons.launcher_parts import launcher_parts
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_after_the_start import send_eviction
from cluster.reasons.test_lost_node import LOST, NODE_LOST_SECONDS, SHORT_CUT_SECONDS, is_silent, placed
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.reasons.timeline import ObservedChange
from cluster.say import say
from cluster.torch_volume import TorchVolume
from muster.api.spec.failure_policy import DEFAULT_FENCE_SECONDS, FENCE_MARGIN_SECONDS

LAUNCHERS = ("direct", "torchrun", "mpi")
POLICY = {"maxDisruptions": 3}
HOOK_SECONDS = 10
SLOW_HOOK = {"preStop": {"exec": {"command": ["sleep", str(HOOK_SECONDS)]}}}
"""The kubelet sends SIGTERM only after this hook."""

FENCED_SECONDS = DEFAULT_FENCE_SECONDS + FENCE_MARGIN_SECONDS
STARTED_SECONDS = 60.0
"""The time for a pod to start and for its ranks to run."""


def test_an_evicted_pod_ends_the_attempt_before_it_dies(stage: Stage) -> None:
    slow = template({"lifecycle": SLOW_HOOK}, terminationGracePeriodSeconds=HOOK_SECONDS + 2)
    stage.apply("drained", SAYS_ATTEMPT, nodes=2, procsPerNode=1, failurePolicy=POLICY, template=slow)
    runs(stage, "drained", 1)
    before = uids(stage, "drained")
    stage.started_pod("drained", 1)
    evicted_at = stage.now()
    send_eviction(stage, "drained-1-0")
    stopping = stage.timeline.first(lambda seen: is_in_phase(seen, "drained", "Stopping"))
    after = runs(stage, "drained", 2)
    say(f"drained: Stopping {stopping.at - evicted_at:.1f} s, running {after.at - evicted_at:.1f} s after the eviction")

    assert stopping.at - evicted_at < HOOK_SECONDS
    assert history(after.status) == [(1, "Evicted", "Disruption", 1)]
    stage.until(lambda: "drained-1-0" not in uids(stage, "drained"))
    left = uids(stage, "drained")
    assert set(left) == {"drained-0-0", "drained-1-1"}
    assert left["drained-0-0"] == before["drained-0-0"]


def start_elastic_job(stage: Stage, folder: Path) -> ElasticJob:
    """Start an elastic job with one pod on each machine. So a lost pod can't be replaced until its machine returns."""
    job = ElasticJob(stage, "parted-elastic", folder, nodes=2)
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"muster.dev/job": job.name}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    job.start("direct", affinity=affinity)
    return job


def start_on_each_launcher(stage: Stage, name: str, torch: TorchVolume) -> tuple[str, ...]:
    """Start a job with each launcher, each with a node on the machine that is lost next. Return their names."""
    names = tuple(f"{name}-{launcher}" for launcher in LAUNCHERS)
    for each, launcher in zip(names, LAUNCHERS, strict=True):
        parts = launcher_parts(launcher, torch)
        spec = placed(
            failurePolicy=POLICY,
            launcher={launcher: {}},
            env=list(parts.env),
            template=template({"volumeMounts": list(parts.mounts)}, volumes=list(parts.volumes)),
        )
        stage.apply(each, SAYS_ATTEMPT, **spec)
    for each in names:
        runs(stage, each, 1)
        assert stage.started_pod(each, 1)["spec"]["nodeName"] == LOST
    return names


# Other tests' pods on the lost machine would not start meanwhile.
@pytest.mark.alone
@pytest.mark.timeout(300)
def test_a_cut_of_20_s_restarts_nothing(stage: Stage, torch_for_pods: TorchVolume) -> None:
    names = start_on_each_launcher(stage, "shaken", torch_for_pods)
    before = {name: uids(stage, name) for name in names}
    cut_at = stage.now()
    with machine.lost(LOST):
        for name in names:
            stage.timeline.first(is_silent(name, "True", cut_at), SHORT_CUT_SECONDS)
        stage.until(lambda: stage.now() >= cut_at + SHORT_CUT_SECONDS)
    healed_at = stage.now()
    for name in names:
        back = stage.timeline.first(is_silent(name, "False", healed_at))
        assert (back.status["phase"], back.status["attempt"]) == ("Running", 1)
        assert "restarts" not in back.status
        assert uids(stage, name) == before[name]


@pytest.mark.alone
@pytest.mark.timeout(400)
def test_a_node_that_is_cut_off_stops_its_ranks_before_it_is_replaced(
    stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path
) -> None:
    elastic = start_elastic_job(stage, tmp_path / "checkpoint")
    elastic_pods, lost_node = uids(stage, elastic.name), find_node_on(stage, elastic.name, LOST)
    names = start_on_each_launcher(stage, "parted", torch_for_pods)
    before = {name: uids(stage, name) for name in names}
    lost_ranks = {name: machine.rank(stage.started_pod(name, 1), 1) for name in names}
    for name in names:
        stage.until(partial(answers, stage, f"{name}-1-0"))
    cut_at = stage.now()
    with machine.lost(LOST):
        for name in names:
            stage.until(partial(has_ended, lost_ranks[name]))
        fenced_at = stage.now()
        say(f"parted: the ranks of the lost node ended {fenced_at - cut_at:.1f} s after the cut")
        assert fenced_at - cut_at < FENCED_SECONDS
        # The elastic job first, because its ranks make steps meanwhile. The timeline keeps the other jobs' changes.
        elastic.next_attempt()
        say(f"{elastic.name}: attempt 2 has begun {stage.now() - cut_at:.1f} s after the cut")
        for name in names:
            after = runs(stage, name, 2)
            say(f"{name}: attempt 2 runs {after.at - cut_at:.1f} s after the cut")
            assert fenced_at < after.at < cut_at + NODE_LOST_SECONDS + STARTED_SECONDS
            assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
            left = uids(stage, name)
            assert left[f"{name}-0-0"] == before[name][f"{name}-0-0"]
            assert f"{name}-1-1" in left
    for name in names:
        stage.until(partial(has_pods, stage, name, {f"{name}-0-0", f"{name}-1-1"}))
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")
    elastic.next_attempt()
    grew_back(elastic, elastic_pods, lost_node)


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


def is_in_phase(seen: ObservedChange, name: str, phase: str) -> bool:
    return seen.kind == "Job" and seen.name == name and seen.status.get("phase") == phase
