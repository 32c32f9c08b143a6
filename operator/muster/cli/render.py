"""`muster render`: what a job would run, as text; nothing is started and nothing is asked of this machine. Pure."""

from __future__ import annotations

import shlex
from dataclasses import replace

from muster.api.serialise import resource, to_yaml
from muster.api.spec import Job
from muster.backends.local.devices import with_procs
from muster.plan.render import render_plan
from muster_worker import launchers, sagemaker
from muster_worker.contract import Launcher, Peer, Plan
from muster_worker.environment import Place, direct_environment, node_environment, per_node_environment

_PORT = 29500
_COLLECTOR = "https://COLLECTOR"
_ROOT = "/opt/ml"


def render_text(job: Job) -> str:
    """The job with its defaults, and for each node the command and the environment that muster adds.

    What is only known when a job runs (addresses, folders) stands in capitals; the port, cores and GPUs are examples.
    With `procsPerNode: Auto` one process is shown for each node.
    """
    plan = replace(render_plan(with_procs(job, 0), _COLLECTOR, ""), job_uid="UID")
    parts = [to_yaml(resource(job))]
    parts += [_node_text(plan, job, node) for node in range(plan.nodes)]
    return "".join(parts)


def _node_text(plan: Plan, job: Job, node: int) -> str:
    place = _place(plan, node)
    own = {variable.name: variable.value for variable in job.spec.env}
    environment = node_environment(own, place)
    if plan.launcher == Launcher.TORCHRUN:
        command = launchers.torchrun(place, 1, lambda _: "torchrun")
    elif plan.launcher == Launcher.DIRECT:
        command, environment = launchers.wrapper(place), direct_environment(environment, place, 0)
    else:
        command, environment = launchers.user_command(plan), per_node_environment(environment, place, "PYTHON_SHIM")
    lines = [
        f"# node {node}: {sagemaker.host_names(plan.nodes)[node]}, {_ranks(plan, node)}",
        f"# $ {shlex.join(command)}",
    ]
    lines += [f"#   {name}={value}" for name, value in sorted(environment.items())]
    return "\n".join(["---", *lines, ""])


def _ranks(plan: Plan, node: int) -> str:
    first = node * plan.procs_per_node
    if plan.procs_per_node == 1:
        return f"rank {first}"
    shown = " (rank by rank; the first one's environment is shown)" if plan.launcher == Launcher.DIRECT else ""
    return f"ranks {first} to {first + plan.procs_per_node - 1}{shown}"


def _place(plan: Plan, node: int) -> Place:
    peers = tuple(Peer(index, f"ADDRESS_{index}", _PORT) for index in range(plan.nodes))
    return Place(
        plan=plan,
        node=node,
        peers=peers,
        interface="INTERFACE",
        host=sagemaker.Host(cpus=1, gpus=0, instance_type="local", interface="INTERFACE", directory="."),
        root=_ROOT,
        run="RUN",
        socket="RUN/agent.sock",
        archive="AGENT.pyz",
        python="PYTHON",
    )
