"""Read the replica specs of Kubeflow's jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.pod_template import PodTemplate, read_template
from muster.importers.kubernetes.restarts import REPLICA_POLICIES


@dataclass(frozen=True)
class Replica:
    """The pods of one type. `template` is None if it is invalid."""

    name: str
    fields: Fields
    count: int
    restart_policy: str | None
    template: PodTemplate | None


def read_replicas(spec: Fields, field: str, default_counts: Mapping[str, int]) -> list[Replica]:
    """Return the replicas that are set and have pods, in the order of `default_counts`."""
    fields = spec.take_fields(field)
    replicas = []
    if not fields.names and not (spec.has_wrong_type or fields.has_wrong_type):
        spec.report.add(spec.locate(field), f"missing, and required: {' and '.join(default_counts)}")
    for name, default_count in default_counts.items():
        # Kubeflow accepts every case.
        key = next((found for found in fields.names if found.lower() == name.lower()), name)
        if fields.has(key):
            replica = _read_replica(fields.take_fields(key), name, default_count)
            if replica.count > 0:
                replicas.append(replica)
    if fields.names and not replicas:
        spec.report.add(spec.locate(field), f"found no pods of {' or '.join(default_counts)}; set replicas")
    return replicas


def _read_replica(fields: Fields, name: str, default_count: int) -> Replica:
    count = fields.take_integer("replicas")
    return Replica(
        name=name,
        fields=fields,
        count=default_count if count is None else count,
        restart_policy=fields.take_choice("restartPolicy", REPLICA_POLICIES),
        template=read_template(fields),
    )
