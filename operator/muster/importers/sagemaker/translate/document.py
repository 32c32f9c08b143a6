"""Write an imported job as a file with comments. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.yaml.serialise import to_yaml
from muster.importers.field_order import order_fields

_RANK_REPORTS_LINE = "    rankReports: 'Off'\n"
_OFF_COMMENT = """\
    # Off: the request is exactly the SageMaker SDK's, and the status shows only what the job's log says about ranks.
"""
_AUTO_COMMENT = """\
    # Auto: muster adds its agent to the code's archive, so that the ranks of torchrun and mpirun report to muster.
"""
_TOOLKIT_COMMENT = """\
    # Ranks can report to muster only if SageMaker's toolkit starts them: framework, and start: Toolkit.
"""


def build_resource(name: str, spec: Mapping[str, JSON]) -> JSON:
    """Return the resource of a job whose request equals the SDK's."""
    sagemaker = spec.get("sagemaker")
    sagemaker_fields = (
        order_fields({**sagemaker, "rankReports": "Off"}, SageMaker) if isinstance(sagemaker, dict) else {}
    )
    fields = order_fields({**spec, "sagemaker": sagemaker_fields}, Spec)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": fields}


def format_resource(value: JSON, origin: str) -> str:
    """Return the resource as YAML. `origin` is the script's line that starts the job."""
    text = to_yaml(value)
    comment = _AUTO_COMMENT if "\n    framework:\n" in text else _TOOLKIT_COMMENT
    return f"# Imported from {origin}.\n" + text.replace(
        _RANK_REPORTS_LINE, _OFF_COMMENT + comment + _RANK_REPORTS_LINE, 1
    )
