"""The plan that agents get."""

import pytest

from muster.api.launchers import mpi
from muster.api.launchers.direct import Direct
from muster.api.launchers.per_node import PerNode
from muster.api.launchers.torchrun import Torchrun
from muster.api.spec import data as data_spec
from muster.api.spec import job as spec
from muster.api.spec import launcher as launcher_spec
from muster.api.spec.failure_policy import FailurePolicy
from muster.core.world import choose_procs_per_node
from muster.render.agent_plan import render_plan
from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import (
    Channel,
    Launcher,
    Metric,
    Plan,
)
from muster_worker.contract.wire import decode, encode
from unit.core.builders import UID, job


def asked(launcher: launcher_spec.LauncherSpec, procs: int | str = 2) -> spec.Job:
    full = spec.Spec.model_validate(
        {
            "nodes": 3,
            "procs_per_node": procs,
            "launcher": launcher,
            "command": ("python", "train.py"),
            "hyperparameters": {"lr": 3e-5, "epochs": 10},
            "metrics": (spec.Metric(name="loss", regex="loss=(.*)"),),
            "inputs": (
                data_spec.Input(
                    name="train",
                    content_type="image/png",
                    volume=data_spec.Volume(host_path=data_spec.HostPath(path="/d")),
                ),
            ),
            "network": spec.Network(interface="eth1", check=True),
        }
    )
    return spec.Job(metadata=spec.Metadata(name="vit", namespace="ml", uid=UID), spec=full)


def test_a_plan_says_what_the_spec_says() -> None:
    launcher = launcher_spec.LauncherSpec(torchrun=Torchrun(args=("--tee=3",)))

    plan = render_plan(asked(launcher), "https://127.0.0.1:8443", "PEM")

    assert plan == Plan(
        version=1,
        namespace="ml",
        job="vit",
        job_uid=UID,
        nodes=3,
        procs_per_node=2,
        launcher="torchrun",
        launcher_args=("--tee=3",),
        command=("python", "train.py"),
        hyperparameters={"lr": 3e-5, "epochs": 10},
        channels=(Channel("train", "image/png"),),
        metrics=(Metric("loss", "loss=(.*)"),),
        interface="eth1",
        collector_url="https://127.0.0.1:8443",
        collector_ca="PEM",
        network_check=True,
        warm_start=True,
    )
    assert decode(Plan, encode(plan)) == plan


@pytest.mark.parametrize(("nodes", "expected"), [(1, 0.0), (3, 600.0)])
def test_the_only_node_of_a_job_is_not_fenced(nodes: int, expected: float) -> None:
    full = asked(launcher_spec.LauncherSpec(direct=Direct()))
    fields = {"nodes": nodes, "failure_policy": FailurePolicy(fence_seconds=600)}
    plan = render_plan(full.model_copy(update={"spec": full.spec.model_copy(update=fields)}), "", "")
    assert plan.fence_seconds == expected


def test_a_plan_says_whose_mpirun_is_meant() -> None:
    launcher = launcher_spec.LauncherSpec(mpi=mpi.Mpi(implementation="MPICH", args=("-v",)))

    plan = render_plan(asked(launcher), "", "")

    assert (plan.launcher, plan.mpi, plan.launcher_args) == (Launcher.MPI, Mpi.MPICH, ("-v",))


@pytest.mark.parametrize(
    ("launcher", "name"),
    [
        (launcher_spec.LauncherSpec(direct=Direct()), "direct"),
        (launcher_spec.LauncherSpec(per_node=PerNode()), "perNode"),
    ],
)
def test_each_launcher_has_its_name(launcher: launcher_spec.LauncherSpec, name: str) -> None:
    plan = render_plan(asked(launcher), "", "")

    assert (plan.launcher, plan.launcher_args) == (name, ())


@pytest.mark.parametrize(("procs", "devices", "ranks"), [(2, 8, 2), ("Auto", 8, 8), ("Auto", 0, 1)])
def test_auto_is_one_rank_a_device(procs: int | str, devices: int, ranks: int) -> None:
    assert choose_procs_per_node(asked(launcher_spec.LauncherSpec(direct=Direct()), procs), devices) == ranks


def test_auto_has_to_be_resolved_first() -> None:
    with pytest.raises(ValueError, match=r"spec\.procsPerNode is still Auto"):
        render_plan(asked(launcher_spec.LauncherSpec(direct=Direct()), "Auto"), "", "")


def test_a_resolved_job_needs_no_devices() -> None:
    assert choose_procs_per_node(job(2, 4), 0) == 4
