"""Builds small plans and contexts of nodes, for tests of the agent's pure modules."""

from collections.abc import Mapping

from muster_worker.contract import schema
from muster_worker.contract.schema import Channel, Peer, Plan, Scalar
from muster_worker.launchers.environment import NodeContext
from muster_worker.network.library_interfaces import Network
from muster_worker.sagemaker.container import Host


def make_plan(
    *command: str,
    launcher: str = schema.Launcher.TORCHRUN,
    nodes: int = 2,
    procs: int = 2,
    hyperparameters: Mapping[str, Scalar] | None = None,
    launcher_args: tuple[str, ...] = (),
) -> Plan:
    return Plan(
        version=schema.VERSION,
        namespace="default",
        job="vit",
        job_uid="uid",
        nodes=nodes,
        procs_per_node=procs,
        launcher=launcher,
        launcher_args=launcher_args,
        command=command or ("python", "train.py"),
        hyperparameters=hyperparameters or {},
        channels=(Channel("train", "image/png"), Channel("my-data")),
        metrics=(),
        interface="Auto",
        collector_url="https://127.0.0.1:1",
        collector_ca="",
    )


def make_node_context(plan: Plan | None = None, node: int = 1) -> NodeContext:
    plan = plan or make_plan()
    return NodeContext(
        plan=plan,
        node=node,
        peers=tuple(Peer(index, f"10.0.0.{index + 1}", 29500 + index) for index in range(plan.nodes)),
        network=Network("eth0", "10.0.0.2"),
        host=Host(cpus=8, gpus=1, instance_type="local", interface="eth0", directory="/code"),
        root="/opt/ml",
        run_dir="/run/muster",
        socket_path="/run/muster/1.sock",
        archive="/agent.pyz",
        python="/usr/bin/python3",
    )
