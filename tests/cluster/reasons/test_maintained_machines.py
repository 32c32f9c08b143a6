"""A machine's kubelet stops and returns, or the machine is drained: the job's ranks lose nothing after a checkpoint."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from cluster.reasons import machine
from cluster.reasons.resumption import SavingJob, check_continued, has_saved, start
from cluster.reasons.stage import Stage
from cluster.reasons.test_disrupted_restarts import is_in_phase
from cluster.reasons.test_lost_node import LOST, placed
from cluster.reasons.test_operator_away import operator_away
from cluster.reasons.test_restarts import uids
from cluster.say import say
from cluster.torch_volume import TorchVolume

pytestmark = [pytest.mark.troubled, pytest.mark.timeout(400)]

LAUNCHERS = ("direct", "torchrun", "mpi")

HANDED = "handed-over"
"""The job that is drained while the operator is killed."""

SavingJobs = Mapping[str, SavingJob]
"""The jobs by name."""

DRAIN_SECONDS = 60

SETTLED_SECONDS = 10.0
"""The time in which muster would act on a node that has become NotReady."""


def is_ready(stage: Stage) -> bool:
    conditions = stage.kubectl.read(f"/api/v1/nodes/{LOST}")["status"]["conditions"]
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


@contextmanager
def draining(stage: Stage, *jobs: str) -> Iterator["subprocess.Popen[str]"]:
    """Begin to drain the machine of these jobs' pods as an administrator does; uncordon it at the end."""
    options = (
        f"--pod-selector=muster.dev/job in ({','.join(jobs)})",
        "--ignore-daemonsets",
        "--force",
        "--delete-emptydir-data",
    )
    try:
        with stage.kubectl.begin("drain", LOST, *options, f"--timeout={DRAIN_SECONDS}s") as drain:
            yield drain
            drain.communicate()
            assert drain.returncode == 0
    finally:
        stage.kubectl("uncordon", LOST)


@contextmanager
def tainted(stage: Stage, taint: str) -> Iterator[None]:
    """Add a taint to the machine; remove it at the end."""
    stage.kubectl("taint", "node", LOST, taint)
    try:
        yield
    finally:
        stage.kubectl("taint", "node", LOST, f"{taint}-")


@pytest.fixture(scope="module")
def saving(stage: Stage, torch_for_pods: TorchVolume, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SavingJobs]:
    """Start all jobs of the drains at once. Each has a node on the machine, and a checkpoint."""
    folder = tmp_path_factory.mktemp("saving")
    launchers = {f"kept-{launcher}": launcher for launcher in LAUNCHERS} | {HANDED: "direct"}
    jobs = {
        name: start(stage, name, launcher, folder / name, torch_for_pods, **placed(procsPerNode=2))
        for name, launcher in launchers.items()
    }
    for job in jobs.values():
        stage.until(partial(has_saved, stage, job))
        assert stage.started_pod(job.name, 1)["spec"]["nodeName"] == LOST
    yield jobs
    stage.jobs.run("delete", "dtj", *jobs, "--wait=false")


def test_jobs_go_on_while_a_kubelet_is_stopped(stage: Stage, saving: SavingJobs) -> None:
    stopped_at = stage.now()
    with machine.stopped_kubelet(LOST):
        stage.until(lambda: not is_ready(stage))
        say(f"{LOST} is NotReady {stage.now() - stopped_at:.1f} s after its kubelet was stopped")
        settled_at, steps = stage.now() + SETTLED_SECONDS, {name: job.saved_step for name, job in saving.items()}
        stage.until(lambda: stage.now() >= settled_at)
        for name, job in saving.items():
            assert job.saved_step > steps[name]
            status = stage.jobs.status(name)
            assert (status["phase"], status["attempt"], status["ranks"]["running"]) == ("Running", 1, 4)
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")
    for name in saving:
        status = stage.jobs.status(name)
        assert (status["phase"], status["attempt"], "restarts" in status) == ("Running", 1, False)


def test_a_drained_machine(stage: Stage, saving: SavingJobs) -> None:
    drained = [job for name, job in saving.items() if name != HANDED]
    with draining(stage, *(job.name for job in drained)):
        for job in drained:
            assert check_continued(stage, job, "Disruption", 1) == "Evicted"
            assert stage.jobs.run("get", "pod", f"{job.name}-1-1", "--output=jsonpath={.spec.nodeName}") not in (
                "",
                LOST,
            )


def test_the_operator_is_killed_while_it_stops_the_ranks_of_a_drained_machine(stage: Stage, saving: SavingJobs) -> None:
    with draining(stage, HANDED):
        stage.timeline.first(lambda seen: is_in_phase(seen, HANDED, "Stopping"))
        with operator_away(stage):
            pass
    check_continued(stage, saving[HANDED], "Disruption", 1)


# The launchers differ only in how the ranks stop, as for a drain.
@pytest.mark.parametrize("launcher", LAUNCHERS if os.environ.get("MUSTER_ALL_LAUNCHERS") else LAUNCHERS[:1])
def test_a_spot_machine_that_is_interrupted(
    stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path, launcher: str
) -> None:
    name = f"spot-{launcher}"
    job = start(stage, name, launcher, tmp_path / name, torch_for_pods, **placed(procsPerNode=2))
    stage.until(partial(has_saved, stage, job))
    assert stage.started_pod(name, 1)["spec"]["nodeName"] == LOST
    before = uids(stage, name)
    # The taint evicts no pod.
    with tainted(stage, f"{machine.INTERRUPTION}=notice:NoSchedule"):
        stopping = stage.timeline.first(lambda seen: is_in_phase(seen, name, "Stopping"))
        assert machine.INTERRUPTION in stopping.status["message"]
        assert check_continued(stage, job, "Disruption", 1) == "NodeShutdown"
        assert stage.jobs.run("get", "pod", f"{name}-1-1", "--output=jsonpath={.spec.nodeName}") not in ("", LOST)
        assert uids(stage, name)[f"{name}-0-0"] == before[f"{name}-0-0"]


def test_a_machine_with_a_taint_that_pods_do_not_tolerate(stage: Stage, tmp_path: Path) -> None:
    job = start(stage, "untolerated", "direct", tmp_path / "untolerated", None, **placed(procsPerNode=2))
    stage.until(partial(has_saved, stage, job))
    assert stage.started_pod(job.name, 1)["spec"]["nodeName"] == LOST
    # Kubernetes deletes pods of the test's job only: those of the cluster's own parts tolerate the taint or wait.
    with tainted(stage, "maintenance=soon:NoExecute"):
        assert check_continued(stage, job, "Disruption", 1) == "NodeLost"
