"""Rules about partial pod templates, which must not set the fields that muster sets.

Templates have no schema in the CRD, so CEL can't validate them. The operator sets Accepted=False instead.
"""

import posixpath
from collections.abc import Iterator

from muster.api.document import JSON, FieldPath, quote
from muster.api.json_fields import read_mapping
from muster.api.names import TRAINER_CONTAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.pods.template_shape import (
    CONTAINERS,
    enumerate_entries,
    find_wrong_types,
    list_containers,
    list_pods,
    list_templates,
)
from muster_worker.contract.rendezvous import is_rendezvous_variable

_RESERVED_PREFIX = "muster.dev/"
_RESERVED_VOLUME_PREFIX = "muster"
_RESERVED_FOLDERS = ("/muster", "/muster-run", "/muster-python", "/muster-sync")
_PARENT_FOLDERS = ("/", "/opt/ml")
"""Folders that contain muster's mounts, which a mount at the folder would hide."""


def _check_types(spec: Spec) -> Iterator[Violation]:
    for path, value in find_wrong_types(spec):
        yield Violation(path, _describe_value(value))


def _describe_value(value: JSON) -> str:
    if isinstance(value, dict | list):
        return "fields" if isinstance(value, dict) else "a list"
    return "null" if value is None else quote(str(value))


def _check_unused_fields(spec: Spec) -> Iterator[Violation]:
    for path, template in list_templates(spec):
        metadata = read_mapping(template.get("metadata"))
        yield from (Violation((*path, name), quote(name)) for name in template if name not in ("metadata", "spec"))
        yield from (
            Violation((*path, "metadata", name), quote(name))
            for name in metadata
            if name not in ("labels", "annotations")
        )


def _find_metadata_entries(spec: Spec) -> Iterator[tuple[FieldPath, str, JSON]]:
    for path, template in list_templates(spec):
        for field in ("labels", "annotations"):
            for name, value in read_mapping(read_mapping(template.get("metadata")).get(field)).items():
                yield (*path, "metadata", field, name), name, value


def _check_reserved_prefix(spec: Spec) -> Iterator[Violation]:
    return (
        Violation(path, quote(name))
        for path, name, _ in _find_metadata_entries(spec)
        if name.startswith(_RESERVED_PREFIX)
    )


def _check_metadata_values(spec: Spec) -> Iterator[Violation]:
    return (
        Violation(path, _describe_value(value))
        for path, _, value in _find_metadata_entries(spec)
        if not isinstance(value, str | None)
    )


def _check_names(spec: Spec) -> Iterator[Violation]:
    for path, pod in list_pods(spec):
        for field in (*CONTAINERS, "volumes"):
            yield from _find_unnamed(("name",), (*path, field), pod.get(field))
    for path, container in list_containers(spec):
        yield from _find_unnamed(("name",), (*path, "env"), container.get("env"))
        yield from _find_unnamed(("name", "mountPath"), (*path, "volumeMounts"), container.get("volumeMounts"))


def _find_unnamed(names: tuple[str, ...], path: FieldPath, entries: JSON) -> Iterator[Violation]:
    for index, entry in enumerate_entries(entries):
        for name in names:
            if not isinstance(entry.get(name), str):
                yield Violation(
                    (*path, index), f"no {name}" if entry.get(name) is None else _describe_value(entry[name])
                )


def _check_restart_policy(spec: Spec) -> Iterator[Violation]:
    for path, pod in list_pods(spec):
        if pod.get("restartPolicy") not in (None, "Never"):
            yield Violation((*path, "restartPolicy"), _describe_value(pod["restartPolicy"]))


def _check_host_names(spec: Spec) -> Iterator[Violation]:
    for path, pod in list_pods(spec):
        for field in ("hostname", "subdomain"):
            if pod.get(field) is not None:
                yield Violation((*path, field), _describe_value(pod[field]))


def _find_trainers(spec: Spec) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    return (entry for entry in list_containers(spec) if entry[1].get("name") == TRAINER_CONTAINER)


def _check_trainer_command(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for field in ("command", "args"):
            if trainer.get(field) is not None:
                yield Violation((*path, field), _describe_value(trainer[field]))


def _check_trainer_variables(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for index, variable in enumerate_entries(trainer.get("env")):
            name = variable.get("name")
            if isinstance(name, str) and is_rendezvous_variable(name):
                yield Violation((*path, "env", index, "name"), name)


def _check_reserved_volumes(spec: Spec) -> Iterator[Violation]:
    for path, pod in list_pods(spec):
        yield from _check_volume_names((*path, "volumes"), pod.get("volumes"))
    for path, container in list_containers(spec):
        yield from _check_volume_names((*path, "volumeMounts"), container.get("volumeMounts"))


def _check_volume_names(path: FieldPath, entries: JSON) -> Iterator[Violation]:
    for index, entry in enumerate_entries(entries):
        name = entry.get("name")
        if isinstance(name, str) and name.startswith(_RESERVED_VOLUME_PREFIX):
            yield Violation((*path, index, "name"), quote(name))


def _check_reserved_folders(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for index, mount in enumerate_entries(trainer.get("volumeMounts")):
            folder = mount.get("mountPath")
            if isinstance(folder, str) and _is_reserved_folder(posixpath.normpath(f"/{folder.lstrip('/')}")):
                yield Violation((*path, "volumeMounts", index, "mountPath"), quote(folder))


def _is_reserved_folder(folder: str) -> bool:
    return folder in _PARENT_FOLDERS or any(f"{folder}/".startswith(f"{reserved}/") for reserved in _RESERVED_FOLDERS)


_TEMPLATE_PATHS = ("spec.template", "spec.nodeOverrides[].template")

TEMPLATE_RULES = (
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="muster merges templates field by field.",
        message="write containers, volumes, env and other lists of a template as lists of fields, and metadata, spec,"
        " labels and securityContext as fields, as in a pod",
        find_violations=_check_types,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="muster sets the pod's name and owner, and ignores other fields.",
        message="a template may have metadata, with labels and annotations, and spec, as in a Deployment; remove this "
        "field",
        find_violations=_check_unused_fields,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="muster selects its pods by labels with this prefix.",
        message=f"the prefix {_RESERVED_PREFIX} is reserved for muster; choose another prefix",
        find_violations=_check_reserved_prefix,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="The API server would reject every pod.",
        message="labels and annotations are text; quote the value",
        find_violations=_check_metadata_values,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="muster merges entries of several templates by name.",
        message="each container, volume and variable needs a name, and each mount a name and a mountPath, as text",
        find_violations=_check_names,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="A rank that restarts alone would wait forever for the other ranks.",
        message="the kubelet must not restart containers of a job; remove the field, or write Never",
        find_violations=_check_restart_policy,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="The ranks find each other by these names.",
        message="muster names the pods algo-1, algo-2, ... below the job's Service; remove this field",
        find_violations=_check_host_names,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="The container runs muster's agent, which runs spec.command.",
        message=f"the command of container {TRAINER_CONTAINER} is spec.command, followed by spec.hyperparameters; "
        "remove this field",
        find_violations=_check_trainer_command,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="Ranks whose world size or rendezvous differs from their peers' wait forever.",
        message=f"muster sets this variable of container {TRAINER_CONTAINER} itself; choose another name",
        find_violations=_check_trainer_variables,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="muster merges volumes by name, so two volumes with the same name would become one.",
        message=f"names of volumes that begin with {_RESERVED_VOLUME_PREFIX} are reserved; choose another name",
        find_violations=_check_reserved_volumes,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="The mount would hide the agent or other mounts of muster.",
        message="muster mounts its agent at /muster, /muster-run, /muster-python and /muster-sync, and folders below"
        " /opt/ml; choose another path",
        find_violations=_check_reserved_folders,
    ),
)
