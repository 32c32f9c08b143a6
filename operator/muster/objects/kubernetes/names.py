"""The names of a job's child objects, and the labels and annotations that identify them."""

from muster.api import names

TRAINER = names.TRAINER
"""The name of the ranks' container."""

JOB_LABEL = "muster.dev/job"
JOB_UID_LABEL = "muster.dev/job-uid"
NODE_LABEL = "muster.dev/node"
REPLACEMENT_LABEL = "muster.dev/replacement"

SPEC_HASH_ANNOTATION = "muster.dev/spec-hash"
"""The hash of the fields from which a pod was rendered."""

PLAN_KEY = "plan.json"
ARCHIVE_KEY = "agent.pyz"
STORAGE_KEY = "storage.json"
"""The keys of the ConfigMap, which are also the names of the files in the pod."""


def pod_name(job_name: str, node: int, replacement: int) -> str:
    """Return the name of a node's pod. It is shorter than a host name's 63 characters."""
    return f"{job_name}-{node}-{replacement}"


def children_name(job_name: str) -> str:
    """Return the name of the job's Service and its ConfigMap."""
    return f"{job_name}-muster"


def host_name(node: int) -> str:
    """Return SageMaker's name of the node."""
    return f"algo-{node + 1}"
