"""The CustomResourceDefinition, generated from the types."""

from copy import deepcopy

import yaml

from muster.api.backends import BACKENDS
from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE, active_job_rule, ended_job_rule
from muster.api.names import API_VERSION, GROUP, KIND, NAME_MESSAGE, PLURAL, SHORT_NAME, VERSION
from muster.api.schema import Schema, spec_schema, status_schema

_COLUMNS: tuple[tuple[str, str, str, str, int], ...] = (
    ("Backend", "string", ".spec.backend", f"What runs the job: {' or '.join(BACKENDS)}.", 0),
    ("Phase", "string", ".status.phase", "Pending, Queued, Starting, Running, Refused, ...: see status.phase.", 0),
    ("Nodes", "integer", ".spec.nodes", "Nodes asked for.", 0),
    ("Ranks", "string", ".status.ranks.ready", "Running ranks of all ranks.", 0),
    (
        "Step",
        "integer",
        ".status.progress.step",
        "Optimizer steps that every rank has completed, if they are counted.",
        0,
    ),
    ("Restarts", "integer", ".status.restarts.total", "How often muster has restarted the ranks after a failure.", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the job was created.", 0),
    ("Attempt", "integer", ".status.attempt", "How often muster has started the ranks.", 1),
    ("Message", "string", ".status.message", "What the job does now, or which rank failed first and how.", 1),
)
"""Columns of priority 1 appear with -o wide."""


def build_crd() -> Schema:
    """Return the CRD as an object; every call returns an equal one."""
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, "description": description, "priority": priority}
            for name, kind, path, description, priority in _COLUMNS
        ],
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.nodes", "statusReplicasPath": ".status.nodes.ready"},
        },
        "schema": {"openAPIV3Schema": _root()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def crd_yaml() -> str:
    """Return the CRD as the text of `crds/`: the same bytes for the same types."""
    header = "# Generated from operator/muster/api by `muster crd`. Do not edit.\n"
    return header + yaml.dump(build_crd(), Dumper=_PlainDumper, sort_keys=False, width=110, allow_unicode=True)


def _root() -> Schema:
    spec: Schema = {**deepcopy(spec_schema()), "description": "What the job is and how it runs."}
    status: Schema = {**deepcopy(status_schema()), "description": "The job's observed state. muster writes it."}
    return {
        "type": "object",
        "description": "A distributed training job: one command, run by nodes x procsPerNode ranks.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{API_VERSION}."},
            "kind": {"type": "string", "description": f"{KIND}."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-validations": [
            {
                "rule": "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "message": NAME_MESSAGE,
            },
            {
                "rule": ended_job_rule(spec),
                "message": ENDED_MESSAGE,
                "reason": "FieldValueForbidden",
                "fieldPath": ".spec",
            },
            {
                "rule": active_job_rule(spec),
                "message": IMMUTABLE_MESSAGE,
                "reason": "FieldValueForbidden",
                "fieldPath": ".spec",
            },
        ],
    }


class _PlainDumper(yaml.SafeDumper):
    """Write values that occur twice in full, without YAML anchors: people read this file."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML calls it so
        return True
