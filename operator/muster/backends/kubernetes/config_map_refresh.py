"""Keep the ConfigMaps of a job whose agents run, because agents read the collector's CA certificates from them."""

from collections.abc import Iterator

from muster.api.spec.job import Job
from muster.backends.kubernetes.children import Children
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.world import count_nodes_with_spares
from muster.diagnose.kubernetes.start_problems import CONFIG_MISSING
from muster.objects.kubernetes.names import build_children_name


async def refresh_config_maps(job: Job, job_state: JobState, pods: PodIndex, children: Children) -> None:
    """Write the ConfigMaps that were deleted, and the job's own one if the CA certificates have changed.

    Raises `ApiError`.
    """
    processes = tuple(_list_active_processes(job, pods))
    if not processes:
        return
    # Refusals do no harm: pods without their ConfigMaps show it, and agents trust the previous CA for a while.
    await _refresh_config_map(job, job_state, processes, children)
    await _refresh_agent_config_map(job, processes, children)


async def _refresh_config_map(
    job: Job, job_state: JobState, processes: tuple[ProcessFacts, ...], children: Children
) -> None:
    ca_bundle, name = children.ca_bundle(), build_children_name(job.metadata.name)
    if ca_bundle != job_state.ca_bundle or any(_lacks_config_map(process, name) for process in processes):
        await children.make_config_map(job)
        job_state.ca_bundle = ca_bundle


async def _refresh_agent_config_map(job: Job, processes: tuple[ProcessFacts, ...], children: Children) -> None:
    name = children.agent_config_maps.name
    if any(_lacks_config_map(process, name) for process in processes):
        children.agent_config_maps.expect_missing(job.metadata.namespace)
    await children.agent_config_maps.make(job)


def _list_active_processes(job: Job, pods: PodIndex) -> Iterator[ProcessFacts]:
    """Yield the nodes' processes that have not ended."""
    for node in range(count_nodes_with_spares(job)):
        entry = pods.get_newest_pod(job.metadata.uid, node)
        if entry is not None and entry.process.state is not ProcessState.EXITED:
            yield entry.process


def _lacks_config_map(process: ProcessFacts, name: str) -> bool:
    """Whether a user deleted this ConfigMap before the pod mounted it."""
    problem = process.problem
    return problem is not None and problem.reason == CONFIG_MISSING and f" {name} " in problem.message
