"""Write a job whose pods all run the same command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.environment import read_environment
from muster.importers.kubernetes.launch.container_command import read_command
from muster.importers.kubernetes.launch.launch import Launch, find_launch
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.node_index import NO_INDEX, NodeIndex
from muster.importers.kubernetes.pod_template import PodTemplate, choose_container
from muster.importers.kubernetes.pods import write_pods
from muster.importers.kubernetes.report import Location, Report
from muster.importers.kubernetes.restarts import RestartLimit, make_policy
from muster.importers.kubernetes.scheduling import write_queue, write_suspend


@dataclass(frozen=True)
class PodJob:
    """The parts of a manifest. `containers` are the names of the ranks' container, or () for the only container."""

    template: PodTemplate
    containers: tuple[str, ...]
    world: World
    suspend: bool | None
    suspend_location: Location
    limit: RestartLimit | None
    rules: Sequence[JSON] = ()
    index: NodeIndex = NO_INDEX


def write_job(draft: Draft, job: PodJob, report: Report) -> Launch | None:
    """Write the job, and return how its ranks start; None with a problem."""
    index = choose_container(job.template, job.containers, report)
    if index is None:
        return None
    container = job.template.containers[index]
    location = job.template.pod_location.child("containers", index)
    environment = read_environment(container, location, report, index=job.index)
    write_queue(draft, draft.metadata, job.template, report)
    write_suspend(draft, job.suspend_location, report, suspend=job.suspend)
    command_location = job.template.locate_field(index, "command")
    command = read_command(container, command_location, environment, report)
    world = replace(job.world, has_address=environment.has_rendezvous or job.world.sets_ranks)
    launch = None if command is None else find_launch(command, world, report)
    used_environment = environment if launch is None else environment.drop_unused(launch.command)
    write_pods(draft, job.template, index, used_environment, report)
    if launch is None:
        return None
    write_launch(draft, launch, job.world, command_location)
    limit = _add_torchrun_restarts(job.limit, launch, command_location, report)
    policy_location = location if limit is None else limit.location
    policy = make_policy(limit, job.rules, report)
    if draft.get("elastic") is not None and not policy:
        policy = {"maxRestarts": 0}  # an elastic job continues after the loss of a node by a restart
    draft.set("failurePolicy", policy, policy_location)
    return launch


def write_launch(draft: Draft, launch: Launch, world: World, location: Location) -> None:
    """Write the launcher, the command and the number of nodes and ranks."""
    draft.set("launcher", launch.launcher, location)
    draft.set("command", list(launch.command), location)
    draft.set("nodes", world.nodes, world.nodes_location)
    if launch.procs != "Auto":
        origin = world.procs.location if launch.torchrun is None else launch.torchrun.procs_location
        draft.set("procsPerNode", launch.procs, origin)
    nodes_range = None if launch.torchrun is None else launch.torchrun.nodes_range
    if nodes_range is not None and nodes_range != (world.nodes, world.nodes):
        minimum, maximum = nodes_range
        draft.set("elastic", {"minNodes": minimum, "maxNodes": maximum}, location)


def _add_torchrun_restarts(
    limit: RestartLimit | None, launch: Launch, location: Location, report: Report
) -> RestartLimit | None:
    """Return the limit of restarts, which is torchrun's --max-restarts if that is higher."""
    restarts = None if launch.torchrun is None else launch.torchrun.max_restarts
    if restarts is None:
        return limit
    own_count = None if limit is None else limit.count
    if own_count is not None and own_count >= restarts:
        report.note(location, "torchrun's --max-restarts: muster restarts all ranks itself, see failurePolicy")
        return limit
    return RestartLimit(restarts, location)
