"""Write an imported job as a file: fields in the resource's order, with comments. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.yaml.serialise import to_yaml

_REPORTS = "    rankReports: 'Off'\n"
_OFF = """\
    # Off: the request is exactly the SageMaker SDK's, and the status shows only what the job's log says about ranks.
"""
_TURNED_ON = """\
    # Auto: ranks that torchrun or mpirun starts report to muster, through its agent in the code's archive.
"""
_ONLY_BY_TOOLKIT = """\
    # Ranks can report to muster only if SageMaker's toolkit starts them: framework, and start: Toolkit.
"""


def build_resource(name: str, spec: Mapping[str, JSON]) -> JSON:
    """Return the resource of a job whose request equals the SDK's."""
    block = spec.get("sagemaker")
    only_sagemaker = _order_fields({**block, "rankReports": "Off"}, SageMaker) if isinstance(block, dict) else {}
    fields = _order_fields({**spec, "sagemaker": only_sagemaker}, Spec)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": fields}


def format_resource(value: JSON, origin: str) -> str:
    """Return the resource as YAML. `origin` is the script's line."""
    text = to_yaml(value)
    comment = _TURNED_ON if "\n    framework:\n" in text else _ONLY_BY_TOOLKIT
    return f"# Imported from {origin}.\n" + text.replace(_REPORTS, _OFF + comment + _REPORTS, 1)


def _order_fields(fields: Mapping[str, JSON], model: type[Spec | SageMaker]) -> dict[str, JSON]:
    items = [str(field.alias) for field in model.model_fields.values()]
    return {name: fields[name] for name in chain(items, fields.keys() - set(items)) if name in fields}
