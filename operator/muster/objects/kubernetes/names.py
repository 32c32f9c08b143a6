"""What a job's children are called, and the labels and annotations that say whose they are."""

from muster.api import names

TRAINER = names.TRAINER
"""The container of the ranks."""

JOB_LABEL = "muster.dev/job"
JOB_UID_LABEL = "muster.dev/job-uid"
NODE_LABEL = "muster.dev/node"
REPLACEMENT_LABEL = "muster.dev/replacement"

SPEC_HASH_ANNOTATION = "muster.dev/spec-hash"
"""What of the job's spec a pod was rendered from."""

PLAN_KEY = "plan.json"
ARCHIVE_KEY = "agent.pyz"
STORAGE_KEY = "storage.json"
"""The ConfigMap's entries, and the names of their files in the pod."""


def pod_name(job_name: str, node: int, replacement: int) -> str:
    """A node's pod. At most 57 characters while replacements have fewer than 12 digits: a host name may have 63."""
    return f"{job_name}-{node}-{replacement}"


def children_name(job_name: str) -> str:
    """The job's Service and its ConfigMap. No pod is called so: theirs end in a number."""
    return f"{job_name}-muster"


def host_name(node: int) -> str:
    """What SageMaker calls the node."""
    return f"algo-{node + 1}"
