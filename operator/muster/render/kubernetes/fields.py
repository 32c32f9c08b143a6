"""Find the field of the job that sets a field of its pod, to report why the API server rejects the pod. Pure."""

import re

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import TRAINER_CONTAINER
from muster.render.kubernetes import own_python, storage

_PATH_PART = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")

_TRAINER = f"spec.containers[{TRAINER_CONTAINER}]"
_CONTAINERS_WITH_SAME_RESOURCES = tuple(
    f"spec.initContainers[{name}]" for name in (own_python.CONTAINER, storage.DOWNLOAD)
)


def find_job_field(field: str, pod: Object, job: Job) -> str:
    """Return the job's field for the pod's `field`, with the names of list items, such as `spec.env[LR].valueFrom`."""
    # The init containers get the resources of the ranks' container.
    named_field = _add_item_names(field, pod)
    for container in _CONTAINERS_WITH_SAME_RESOURCES:
        named_field = named_field.replace(f"{container}.resources", f"{_TRAINER}.resources")
    # All other fields come from the job's template.
    job_fields = {
        f"{_TRAINER}.image": "spec.image" if job.spec.image else "",
        f"{_TRAINER}.resources": "spec.resources" if job.spec.resources.model_fields_set else "",
        **{f"{_TRAINER}.env[{variable.name}]": f"spec.env[{variable.name}]" for variable in job.spec.env},
        **_find_pool_fields(job),
    }
    for prefix, job_field in job_fields.items():
        suffix = named_field.removeprefix(prefix)
        if job_field and suffix != named_field and suffix[:1] in ("", ".", "["):
            return job_field + suffix
    return f"spec.template.{named_field}" if named_field.startswith(("spec", "metadata")) else named_field


def _find_pool_fields(job: Job) -> dict[str, str]:
    """Return the pod's fields that come from the node pool. Its tolerations are the first in the pod."""
    pool, template = job.spec.node_pool, read_mapping(job.spec.template.get("spec"))
    if pool is None:
        return {}
    source = "spec.nodePool" if pool.name is None else f"the operator's node pool {pool.name}"
    fields = {f"spec.tolerations[{index}]": f"{source}.tolerations[{index}]" for index in range(len(pool.tolerations))}
    if pool.node_selector and not template.get("nodeSelector"):
        fields["spec.nodeSelector"] = f"{source}.nodeSelector"
    return fields


def _add_item_names(field: str, pod: Object) -> str:
    text, value = "", _convert_to_json(pod)
    for part in _PATH_PART.finditer(field):
        key, index = part.groups()
        if key is not None:
            text += f".{key}" if text else key
            value = value.get(key) if isinstance(value, dict) else None
            continue
        items = value if isinstance(value, list) else []
        value = items[int(index)] if index.isdecimal() and int(index) < len(items) else None
        name = value.get("name") if isinstance(value, dict) else None
        text += f"[{name if isinstance(name, str) else index}]"
    return text


def _convert_to_json(pod: Object) -> JSON:
    return dict(pod)
