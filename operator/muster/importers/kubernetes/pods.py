"""Write a pod template into a job: image, environment, resources, and the rest as spec.template. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.api.names import TRAINER_CONTAINER
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.environment import Environment, list_env_paths
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.report import Report

_OWN_FIELDS = ("command", "args", "name", "image", "env", "resources")
"""The fields of the ranks' container that a job has elsewhere. The launch has command and args."""

_HOST_NAMES = ("hostname", "subdomain", "setHostnameAsFQDN")


def write_pods(draft: Draft, template: PodTemplate, index: int, environment: Environment, report: Report) -> None:
    """Write the template into the job. `index` is the position of the ranks' container."""
    container = template.containers[index]
    location = template.pod_location.child("containers", index)
    if not container.get("image"):
        report.add(template.locate_field(index, "image"), "missing, and required: the image of the ranks' container")
    draft.set("image", container.get("image"), template.locate_field(index, "image"))
    draft.set("env", environment.build(), location.child("env"))
    for path, origin in list_env_paths(environment.locations):
        draft.add_origin(path, origin)
    draft.set("resources", container.get("resources"), template.locate_field(index, "resources"))
    trainer = {name: value for name, value in container.items() if name not in _OWN_FIELDS}
    _write_template(draft, template, index, trainer, report)


def _write_template(draft: Draft, template: PodTemplate, index: int, trainer: dict[str, JSON], report: Report) -> None:
    pod = {name: value for name, value in template.pod.items() if name not in ("containers", "restartPolicy")}
    for name in _HOST_NAMES:
        if pod.pop(name, None) is not None:
            report.note(template.pod_location.child(name), "muster names the pods' hosts algo-1, algo-2, ...")
    containers: list[JSON] = []
    for position, container in enumerate(template.containers):
        origin = template.pod_location.child("containers", position)
        if position != index and container.get("name") == TRAINER_CONTAINER:
            report.add(origin.child("name"), f"found {TRAINER_CONTAINER}, which is the ranks' container; rename it")
        if position != index or trainer:
            draft.add_origin(("spec", "template", "spec", "containers", len(containers)), origin)
            containers.append({"name": TRAINER_CONTAINER, **trainer} if position == index else dict(container))
    spec: dict[str, JSON] = {**pod, **({"containers": containers} if containers else {})}
    metadata: dict[str, JSON] = {
        name: value for name, value in (("labels", template.labels), ("annotations", template.annotations)) if value
    }
    value: dict[str, JSON] = {name: fields for name, fields in (("metadata", metadata), ("spec", spec)) if fields}
    draft.set("template", value, template.location)
