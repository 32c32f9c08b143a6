"""Let a job's Service select its pods once they have addresses.

If the Service selected pods that start, Kubernetes would write its endpoints again for each of them.
"""

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.core.facts import ProcessState
from muster.core.world import count_nodes_with_spares
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SERVICES
from muster.objects.kubernetes.names import build_children_name
from muster.objects.kubernetes.pods import read_owner_uid
from muster.render.kubernetes.render import render_pod_selector


async def select_pods(job: Job, job_state: JobState, pods: PodIndex, client: Client) -> None:
    """Add the selector if enough pods have an address for the ranks to start. Raises `ApiError`."""
    if job_state.service_has_selector or _count_addresses(job, pods) < job.spec.min_nodes:
        return
    await _add_selector(job, client)
    job_state.service_has_selector = True


def _count_addresses(job: Job, pods: PodIndex) -> int:
    """Count the pods with an address that have not ended. No pod looks up the names of an ended job."""
    newest = (pods.get_newest_pod(job.metadata.uid, node) for node in range(count_nodes_with_spares(job)))
    entries = (entry for entry in newest if entry is not None and entry.process.state is not ProcessState.EXITED)
    return sum(entry.pod.ip != "" for entry in entries)


async def _add_selector(job: Job, client: Client) -> None:
    namespace, name, selector = job.metadata.namespace, build_children_name(job.metadata.name), render_pod_selector(job)
    try:
        stored = await client.get(SERVICES, namespace, name)
        if read_owner_uid(stored) != job.metadata.uid or read_mapping(stored["spec"]).get("selector") == selector:
            return
        # With the uid, the API server refuses to change another owner's new Service.
        uid = read_mapping(stored["metadata"]).get("uid")
        await client.merge(SERVICES, namespace, name, {"metadata": {"uid": uid}, "spec": {"selector": selector}})
    except ApiError as error:
        # A user has deleted the Service: muster creates it again together with the next pod.
        if not (error.is_not_found or error.is_conflict):
            raise
