"""Find the job's field for a field of a pod that the API server rejects. Pure."""

import re

from muster.api.document import JSON
from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import TRAINER
from muster.render.kubernetes import own_python, storage

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")

_TRAINER = f"spec.containers[{TRAINER}]"
_LIKE_TRAINER = tuple(f"spec.initContainers[{name}]" for name in (own_python.CONTAINER, storage.DOWNLOAD))


def in_job(field: str, pod: Object, job: Job) -> str:
    """Map the pod's `field` to the job's, with names for list items: `spec.env[LR].valueFrom`."""
    # The init containers get the resources of the ranks' container.
    named = _with_names(field, pod)
    for container in _LIKE_TRAINER:
        named = named.replace(f"{container}.resources", f"{_TRAINER}.resources")
    # All other fields come from the job's template.
    job_fields = {
        f"{_TRAINER}.image": "spec.image" if job.spec.image else "",
        f"{_TRAINER}.resources": "spec.resources" if job.spec.resources.model_fields_set else "",
        **{f"{_TRAINER}.env[{variable.name}]": f"spec.env[{variable.name}]" for variable in job.spec.env},
        **_pool_fields(job),
    }
    for prefix, job_field in job_fields.items():
        rest = named.removeprefix(prefix)
        if job_field and rest != named and rest[:1] in ("", ".", "["):
            return job_field + rest
    return f"spec.template.{named}" if named.startswith(("spec", "metadata")) else named


def _pool_fields(job: Job) -> dict[str, str]:
    """The pod's fields that come from the node pool, whose tolerations are the first in the pod."""
    pool, template = job.spec.node_pool, mapping(job.spec.template.get("spec"))
    if pool is None:
        return {}
    source = "spec.nodePool" if pool.name is None else f"the operator's node pool {pool.name}"
    fields = {f"spec.tolerations[{index}]": f"{source}.tolerations[{index}]" for index in range(len(pool.tolerations))}
    if pool.node_selector and not template.get("nodeSelector"):
        fields["spec.nodeSelector"] = f"{source}.nodeSelector"
    return fields


def _with_names(field: str, pod: Object) -> str:
    text, value = "", _json(pod)
    for step in _STEP.finditer(field):
        key, index = step.groups()
        if key is not None:
            text += f".{key}" if text else key
            value = value.get(key) if isinstance(value, dict) else None
            continue
        items = value if isinstance(value, list) else []
        value = items[int(index)] if index.isdecimal() and int(index) < len(items) else None
        name = value.get("name") if isinstance(value, dict) else None
        text += f"[{name if isinstance(name, str) else index}]"
    return text


def _json(pod: Object) -> JSON:
    return dict(pod)
