"""Where in a job's resource stands what the API server finds wrong in a pod. Pure."""

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
    """The job's field that became the pod's `field`, list items by their names: `spec.env[LR].valueFrom`."""
    # what brings the agent's Python, or files, asks for what the ranks' container asks for
    named = _with_names(field, pod)
    for container in _LIKE_TRAINER:
        named = named.replace(f"{container}.resources", f"{_TRAINER}.resources")
    # What the job has no field of its own for comes from its template.
    own = {
        f"{_TRAINER}.image": "spec.image" if job.spec.image else "",
        f"{_TRAINER}.resources": "spec.resources" if job.spec.resources.model_fields_set else "",
        **{f"{_TRAINER}.env[{variable.name}]": f"spec.env[{variable.name}]" for variable in job.spec.env},
        **_of_the_pool(job),
    }
    for prefix, instead in own.items():
        rest = named.removeprefix(prefix)
        if instead and rest != named and rest[:1] in ("", ".", "["):
            return instead + rest
    return f"spec.template.{named}" if named.startswith(("spec", "metadata")) else named


def _of_the_pool(job: Job) -> dict[str, str]:
    """What the node pool brought, by its places in the pod: its tolerations are the first there."""
    pool, template = job.spec.node_pool, mapping(job.spec.template.get("spec"))
    if pool is None:
        return {}
    source = "spec.nodePool" if pool.name is None else f"the operator's node pool {pool.name}"
    places = {f"spec.tolerations[{index}]": f"{source}.tolerations[{index}]" for index in range(len(pool.tolerations))}
    if pool.node_selector and not template.get("nodeSelector"):
        places["spec.nodeSelector"] = f"{source}.nodeSelector"
    return places


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
