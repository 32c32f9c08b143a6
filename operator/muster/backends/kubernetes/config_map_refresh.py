"""Update a job's ConfigMap while its agents run: they read the collector's CA certificates from it."""

from collections.abc import Iterator

from muster.api.spec.job import Job
from muster.backends.kubernetes.children import Children
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.world import count_nodes_with_spares
from muster.diagnose.kubernetes.start_problems import CONFIG_MISSING
from muster.objects.kubernetes.names import build_children_name


async def refresh_config_map(job: Job, job_state: JobState, pods: PodIndex, children: Children) -> None:
    """Write the ConfigMap if the CA certificates have changed, or if it was deleted. Raises `ApiError`."""
    ca_bundle, processes = children.ca_bundle(), tuple(_active_processes(job, pods))
    if not processes or (
        ca_bundle == job_state.ca_bundle and not any(_lacks_config_map(job, process) for process in processes)
    ):
        return
    # A refusal does no harm: pods without the ConfigMap show it, and agents trust the previous CA for a while.
    await children.make_config_map(job)
    job_state.ca_bundle = ca_bundle


def _active_processes(job: Job, pods: PodIndex) -> Iterator[ProcessFacts]:
    """Yield the nodes' processes that have not ended."""
    for node in range(count_nodes_with_spares(job)):
        entry = pods.newest_pod(job.metadata.uid, node)
        if entry is not None and entry.process.state is not ProcessState.EXITED:
            yield entry.process


def _lacks_config_map(job: Job, process: ProcessFacts) -> bool:
    """Whether the job's ConfigMap was deleted before the pod mounted it."""
    problem = process.problem
    if problem is None or problem.reason != CONFIG_MISSING:
        return False
    return f" {build_children_name(job.metadata.name)} " in problem.message
