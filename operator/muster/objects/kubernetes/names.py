"""Names of a job's child objects, and the labels and annotations that identify them."""

from muster.api import names

TRAINER = names.TRAINER
"""The container of the ranks."""

JOB_LABEL = "muster.dev/job"
JOB_UID_LABEL = "muster.dev/job-uid"
NODE_LABEL = "muster.dev/node"
REPLACEMENT_LABEL = "muster.dev/replacement"

SPEC_HASH_ANNOTATION = "muster.dev/spec-hash"
"""The hash of the fields from which a pod was rendered."""

PLAN_KEY = "plan.json"
ARCHIVE_KEY = "agent.pyz"
STORAGE_KEY = "storage.json"
"""The ConfigMap's entries, and the names of their files in the pod."""


def pod_name(job_name: str, node: int, replacement: int) -> str:
    """A node's pod. With fewer than 12 digits for the replacement, it has at most 57 characters of a host name's 63."""
    return f"{job_name}-{node}-{replacement}"


def children_name(job_name: str) -> str:
    """The job's Service and its ConfigMap. No pod has this name, because pods' names end in a number."""
    return f"{job_name}-muster"


def host_name(node: int) -> str:
    """SageMaker's name of the node."""
    return f"algo-{node + 1}"
