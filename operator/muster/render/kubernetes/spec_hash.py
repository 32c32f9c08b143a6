"""Hash the fields of a job's spec that affect its pods and its plan."""

import hashlib
import json

from pydantic.alias_generators import to_snake

from muster.api.changes import ELASTIC_MUTABLE_FIELD, MUTABLE_FIELDS
from muster.api.spec.job import Job
from muster.render.kubernetes.devices import resolve_procs_per_node

_CHANGEABLE_FIELDS = {to_snake(name) for name in MUTABLE_FIELDS}
"""The fields that may change while pods run, because they don't affect the pods."""

_DIGITS = 16


def hash_spec(job: Job) -> str:
    """Return 16 hexadecimal digits that are equal for jobs with equal pods.

    Fields with default values are omitted, so that new fields in a release of muster don't change the hashes of running
    pods. The hash contains the number of ranks instead of `procsPerNode: Auto`. Raises `InvalidResource` if the number
    is unknown.
    """
    changeable = _CHANGEABLE_FIELDS | (frozenset() if job.spec.elastic is None else {ELASTIC_MUTABLE_FIELD})
    fields = resolve_procs_per_node(job).spec.model_dump(
        mode="json", by_alias=True, exclude=changeable, exclude_defaults=True
    )
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGITS]
