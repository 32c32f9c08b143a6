"""The names of a job's child objects, and the labels and annotations that identify them."""

import hashlib
import re

from muster.api import names

TRAINER_CONTAINER = names.TRAINER_CONTAINER
"""The name of the ranks' container."""

JOB_LABEL = "muster.dev/job"
NODE_LABEL = "muster.dev/node"
REPLACEMENT_LABEL = "muster.dev/replacement"

SHARD_LABEL = "muster.dev/shard"
"""The label of pods whose job does not belong to the operator's first shard."""

SPEC_HASH_ANNOTATION = "muster.dev/spec-hash"
"""The hash of the fields from which a pod was rendered."""

PLAN_KEY = "plan.json"
STORAGE_KEY = "storage.json"
"""The keys of the job's ConfigMap, which are also the names of the files in the pod."""

ARCHIVE_KEY = "agent.pyz"
"""The key of the agent's ConfigMap, which is also the name of the file in the pod."""

SOURCE_LABEL = "muster.dev/source"
"""The label of ConfigMaps with edited code."""

SOURCE_KEY = "source.tar.gz"
"""The key of a ConfigMap with edited code."""

_HASH_DIGITS = 16
_DIGITS = re.compile(f"[0-9a-f]{{{_HASH_DIGITS}}}")


def build_source_name(job_name: str, sha256: str) -> str:
    """Return the name of the ConfigMap with edited code; `sha256` is the hash of the code's archive."""
    return f"{job_name}-source-{sha256[:_HASH_DIGITS]}"


def is_source_name(job_name: str, name: str) -> bool:
    """Whether `build_source_name` returns this name for some archive of the job."""
    prefix = build_source_name(job_name, "")
    return name.startswith(prefix) and _DIGITS.fullmatch(name[len(prefix) :]) is not None


def build_pod_name(job_name: str, node: int, replacement: int) -> str:
    """Return the name of a node's pod. It is shorter than a host name's 63 characters."""
    return f"{job_name}-{node}-{replacement}"


def build_children_name(job_name: str) -> str:
    """Return the name of the job's Service and its ConfigMap."""
    return f"{job_name}-muster"


def build_agent_name(archive: bytes, shard_suffix: str = "") -> str:
    """Return the name of the ConfigMap with this archive of the agent, which each shard of the operator creates."""
    return f"muster-agent-{hashlib.sha256(archive).hexdigest()[:_HASH_DIGITS]}{shard_suffix}"


def build_host_name(node: int) -> str:
    """Return SageMaker's name of the node."""
    return f"algo-{node + 1}"
