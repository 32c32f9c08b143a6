"""The CustomResourceDefinitions of templates, from the same types as a job's."""

from collections.abc import Mapping
from copy import deepcopy

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.names import (
    API_VERSION,
    CLUSTER_TEMPLATE_KIND,
    CLUSTER_TEMPLATE_PLURAL,
    GROUP,
    TEMPLATE_KIND,
    TEMPLATE_PLURAL,
    VERSION,
)
from muster.api.schema import Schema, build_spec_schema

OWN_FIELDS = ("templateRef", "suspend", "nodes")
"""Fields of a spec that each job sets itself.

The API server sets `suspend` and `nodes` in every job that has none. If a template had them, muster could not tell
whether the job's author wrote them.
"""

_REMOVED_KEYS = ("default", "x-kubernetes-validations")
"""A template has only what its author wrote. The rules compare fields that the job may set."""

_COLUMNS = (
    ("Backend", ".spec.backend"),
    ("Image", ".spec.image"),
    ("Pool", ".spec.nodePool.name"),
)


def build_template_crds() -> tuple[Schema, Schema]:
    """Return the CRDs of TrainingTemplate and ClusterTrainingTemplate as objects."""
    return (
        _build_crd(TEMPLATE_KIND, TEMPLATE_PLURAL, "ttpl", "Namespaced", "for jobs in its namespace"),
        _build_crd(CLUSTER_TEMPLATE_KIND, CLUSTER_TEMPLATE_PLURAL, "cttpl", "Cluster", "for jobs in all namespaces"),
    )


def _build_crd(kind: str, plural: str, short_name: str, scope: str, users: str) -> Schema:
    columns: list[JSON] = [{"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS]
    columns.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short_name],
            },
            "scope": scope,
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": _build_root_schema(kind, users)},
                }
            ],
        },
    }


def _build_root_schema(kind: str, users: str) -> Schema:
    spec = _keep_types(build_spec_schema())
    fields = {name: field for name, field in read_mapping(spec["properties"]).items() if name not in OWN_FIELDS}
    return {
        "type": "object",
        "description": f"Fields of a DistributedTrainingJob, {users}. A job names the template in spec.templateRef.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{API_VERSION}."},
            "kind": {"type": "string", "description": f"{kind}."},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "The values of jobs that do not set these fields themselves.",
                "properties": fields,
            },
        },
    }


def _keep_types(schema: Mapping[str, JSON]) -> Schema:
    """Return a copy of the schema without defaults and rules."""
    result: Schema = {key: deepcopy(value) for key, value in schema.items() if key not in _REMOVED_KEYS}
    for name in ("items", "additionalProperties"):
        if isinstance(result.get(name), dict):
            result[name] = _keep_types(read_mapping(result[name]))
    if "properties" in result:
        fields = read_mapping(result["properties"])
        result["properties"] = {name: _keep_types(read_mapping(field)) for name, field in fields.items()}
    return result
