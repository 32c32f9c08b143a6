"""The CustomResourceDefinitions, generated from the types."""

from copy import deepcopy

import yaml

from muster.api.backends import BACKENDS
from muster.api.changes import IMMUTABLE_MESSAGE, build_change_message, build_change_rule
from muster.api.names import (
    API_VERSION,
    CLUSTER_TEMPLATE_PLURAL,
    GROUP,
    KIND,
    NAME_MESSAGE,
    PLURAL,
    SHORT_NAME,
    TEMPLATE_PLURAL,
    VERSION,
)
from muster.api.schema import Schema, build_spec_schema
from muster.api.status.status import DEFAULT_STATUS
from muster.api.status_schema import build_status_schema
from muster.api.template_crds import build_template_crds

_COLUMNS: tuple[tuple[str, str, str, str, int], ...] = (
    ("Backend", "string", ".spec.backend", f"The backend that runs the job: {' or '.join(BACKENDS)}.", 0),
    ("Phase", "string", ".status.phase", "Pending, Queued, Starting, Running, Refused, ...: see status.phase.", 0),
    ("Nodes", "integer", ".spec.nodes", "The number of nodes in the spec.", 0),
    ("Ranks", "string", ".status.ranks.ready", "The number of running ranks and of all ranks.", 0),
    (
        "Step",
        "integer",
        ".status.progress.step",
        "The number of optimizer steps that every rank has completed, if the ranks report steps.",
        0,
    ),
    ("Restarts", "integer", ".status.restarts.total", "How often muster has restarted the ranks after a failure.", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the job was created.", 0),
    ("Percent", "integer", ".status.progress.percent", "How much of the training is done.", 1),
    (
        "Remaining",
        "integer",
        ".status.progress.estimatedRemainingSeconds",
        "How many seconds the training will still take.",
        1,
    ),
    ("Spares", "integer", ".status.spares.ready", "The number of hot spares that are ready.", 1),
    ("Attempt", "integer", ".status.attempt", "How often muster has started the ranks.", 1),
    (
        "Message",
        "string",
        ".status.message",
        "The job's current activity, or the rank that failed first and its error.",
        1,
    ),
)
"""The columns of `kubectl get`: name, type, path, description and priority.

`-o wide` adds the columns of priority 1.
"""


def build_crd() -> Schema:
    """Return the CRD of DistributedTrainingJob as an object."""
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            {"name": name, "type": column_type, "jsonPath": path, "description": description, "priority": priority}
            for name, column_type, path, description, priority in _COLUMNS
        ],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.nodes",
                "statusReplicasPath": ".status.nodes.ready",
                "labelSelectorPath": ".status.elastic.selector",
            },
        },
        "schema": {"openAPIV3Schema": _build_root_schema()},
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


PLURALS = (PLURAL, TEMPLATE_PLURAL, CLUSTER_TEMPLATE_PLURAL)
"""The plurals of muster's kinds, in the order of `build_crds`."""


def build_crds() -> tuple[Schema, ...]:
    """Return all CRDs of muster. `crds/` has a file for each."""
    return (build_crd(), *build_template_crds())


def format_crd_yaml(plural: str = PLURAL) -> str:
    """Return a CRD as the YAML text that `crds/` contains. Raises `ValueError` for an unknown plural."""
    header = "# Generated from operator/muster/api by `muster crd`. Do not edit.\n"
    crd = build_crds()[PLURALS.index(plural)]
    return header + yaml.dump(crd, Dumper=_PlainDumper, sort_keys=False, width=110, allow_unicode=True)


def _build_root_schema() -> Schema:
    spec: Schema = {
        **deepcopy(build_spec_schema()),
        "description": "The desired state of the job: its command, its code and data, and how it runs.",
    }
    status: Schema = {
        **deepcopy(build_status_schema()),
        "description": "The observed state of the job, which muster writes.",
        "default": dict(DEFAULT_STATUS),
    }
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
                "rule": build_change_rule(spec),
                "message": IMMUTABLE_MESSAGE,
                "messageExpression": build_change_message(),
                "reason": "FieldValueForbidden",
                "fieldPath": ".spec",
            },
        ],
    }


class _PlainDumper(yaml.SafeDumper):
    """A dumper without YAML anchors and aliases, because people read the CRD."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML defines the parameter
        return True
