"""One word for what of a job's spec its pods and its plan are made of."""

import hashlib
import json

from pydantic.alias_generators import to_snake

from muster.api.changes import CHANGEABLE
from muster.api.spec.job import Job
from muster.render.kubernetes.devices import with_procs

_AFTERTHOUGHTS = {to_snake(name) for name in CHANGEABLE}
"""What may change while pods run: it says when they go, not what they are."""

_DIGITS = 16


def spec_hash(job: Job) -> str:
    """Equal for two jobs exactly when all that shapes their pods is equal; 16 hexadecimal digits.

    A field at its default counts as unset: a release of muster that brings a new field leaves the hashes of running
    pods as they are. `procsPerNode: Auto` counts as the number that it stands for; raises `InvalidResource` where it
    stands for none.
    """
    fields = with_procs(job).spec.model_dump(mode="json", by_alias=True, exclude=_AFTERTHOUGHTS, exclude_defaults=True)
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGITS]
