"""Variables with the index of a pod, which the controllers of Kubernetes and Volcano set. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.objects.kubernetes.names import NODE_LABEL

_OLD_FIELD = re.compile(
    r"metadata\.(labels|annotations)\['(batch\.kubernetes\.io|jobset\.sigs\.k8s\.io|training\.kubeflow\.org|volcano\.sh)/.*'\]"
)

NODE_FIELD = f"metadata.labels['{NODE_LABEL}']"
"""The field of muster's pods with the number of the node."""


@dataclass(frozen=True)
class NodeIndex:
    """Where a pod of the manifest finds its number among the nodes.

    `fields` are labels and annotations, as in fieldRef. `variables` are those that the controller adds by itself.
    """

    fields: Sequence[str] = ()
    variables: Sequence[str] = ()


NO_INDEX = NodeIndex()

COMPLETION_INDEX = NodeIndex(
    fields=(
        "metadata.annotations['batch.kubernetes.io/job-completion-index']",
        "metadata.labels['batch.kubernetes.io/job-completion-index']",
    ),
    variables=("JOB_COMPLETION_INDEX",),
)
"""The index of a pod of an Indexed Job."""

TASK_INDEX = NodeIndex(variables=("VC_TASK_INDEX", "VK_TASK_INDEX"))
"""The index of a pod of a Volcano task."""


def get_field_path(entry: Mapping[str, JSON]) -> str:
    """Return the field of the pod from which a variable gets its value; "" for other variables."""
    source = read_mapping(read_mapping(entry.get("valueFrom")).get("fieldRef"))
    return read_string(source.get("fieldPath"))


def is_old_field(path: str) -> bool:
    """Whether only the old controller sets this label or annotation."""
    return _OLD_FIELD.fullmatch(path) is not None


def make_index_variable(name: str) -> dict[str, JSON]:
    """Return a variable with the number of the node."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": NODE_FIELD}}}


def list_used_variables(index: NodeIndex, container: Mapping[str, JSON]) -> list[str]:
    """Return the variables of the controller that the container's command mentions."""
    text = json.dumps([container.get("command"), container.get("args")])
    return [name for name in index.variables if re.search(rf"\b{name}\b", text)]
