"""A TrainJob's trainer, which overrides the runtime's container. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.api.validation.rules.pods.fields import find_wrong_fields
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.pod_template import PodTemplate, describe_wrong_field
from muster.importers.kubernetes.report import Location
from muster.render.kubernetes.merge import Fields as PodFields
from muster.render.kubernetes.merge import merge


@dataclass(frozen=True)
class Trainer:
    """spec.trainer. Unset fields are None."""

    fields: Fields
    image: str | None
    command: list[JSON] | None
    args: list[JSON] | None
    env: JSON
    resources: JSON
    nodes: int | None
    nodes_location: Location
    procs: JSON
    procs_location: Location


def read_trainer(fields: Fields) -> Trainer:
    """Read the trainer. Its environment and resources are checked as those of a container."""
    command, args = fields.take_texts("command"), fields.take_texts("args")
    env, resources = fields.take("env"), fields.take("resourcesPerNode")
    container: PodFields = {
        "name": "node",
        **({"env": env} if env is not None else {}),
        **({"resources": resources} if resources is not None else {}),
    }
    _check_container(container, fields)
    return Trainer(
        fields=fields,
        image=fields.take_text("image"),
        command=list(command) or None,
        args=list(args) or None,
        env=env,
        resources=resources,
        nodes=fields.take_integer("numNodes", 1),
        nodes_location=fields.locate("numNodes"),
        procs=fields.take("numProcPerNode"),
        procs_location=fields.locate("numProcPerNode"),
    )


def _check_container(container: PodFields, fields: Fields) -> None:
    """Report wrong fields of the environment and the resources at the trainer's own paths."""
    for wrong_field in find_wrong_fields({"containers": [container]}, ()):
        name, *rest = wrong_field.path[2:]
        own_name = "resourcesPerNode" if name == "resources" else str(name)
        fields.report.add(fields.locate(own_name, *rest), describe_wrong_field(wrong_field))


def apply_trainer(template: PodTemplate, trainer: Trainer, name: str) -> PodTemplate:
    """Return the template with the trainer's values in the container `name`, or in the only one."""
    index = template.find_container(name)
    if index is None and len(template.containers) == 1:
        index = 0
    containers: list[JSON] = [
        _apply(container, trainer) if position == index else container
        for position, container in enumerate(template.containers)
    ]
    names = {"image": trainer.image, "command": trainer.command, "resources": trainer.resources}
    fields = {"resources": "resourcesPerNode"}
    origins = {
        name: trainer.fields.locate(fields.get(name, name)) for name, value in names.items() if value is not None
    }
    return replace(template, pod={**template.pod, "containers": containers}, origins=origins)


def _apply(container: PodFields, trainer: Trainer) -> PodFields:
    values: PodFields = {"image": trainer.image, "command": trainer.command, "args": trainer.args}
    result = {**container, **{field: value for field, value in values.items() if value is not None}}
    if isinstance(trainer.resources, dict):
        result["resources"] = trainer.resources
    return merge(result, {"env": trainer.env}) if isinstance(trainer.env, list) else result
