"""Rules about partial pod templates: they must not set the fields that muster sets.

Templates have no schema, so CEL can't validate them: the operator rejects an invalid one with Accepted=False.
"""

import posixpath
from collections.abc import Iterator

from muster.api.document import JSON, FieldPath, quote
from muster.api.json_fields import mapping
from muster.api.names import TRAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.pods.template_shape import (
    CONTAINERS,
    containers,
    entries_of,
    find_misshapen,
    pods,
    templates,
)
from muster_worker.contract.rendezvous import is_rendezvous_variable

_OWN_DOMAIN = "muster.dev/"
_OWN_VOLUMES = "muster"
_OWN_FOLDERS = ("/muster", "/muster-run", "/muster-python", "/muster-sync")
_WHOLE_FOLDERS = ("/", "/opt/ml")
"""Folders at which a mount would hide muster's mounts below them."""


def _check_shapes(spec: Spec) -> Iterator[Violation]:
    for path, value in find_misshapen(spec):
        yield Violation(path, _describe_kind(value))


def _describe_kind(value: JSON) -> str:
    if isinstance(value, dict | list):
        return "fields" if isinstance(value, dict) else "a list"
    return "null" if value is None else quote(str(value))


def _check_other_parts(spec: Spec) -> Iterator[Violation]:
    for path, template in templates(spec):
        metadata = mapping(template.get("metadata"))
        yield from (Violation((*path, name), quote(name)) for name in template if name not in ("metadata", "spec"))
        yield from (
            Violation((*path, "metadata", name), quote(name))
            for name in metadata
            if name not in ("labels", "annotations")
        )


def _find_metadata_entries(spec: Spec) -> Iterator[tuple[FieldPath, str, JSON]]:
    for path, template in templates(spec):
        for field in ("labels", "annotations"):
            for name, value in mapping(mapping(template.get("metadata")).get(field)).items():
                yield (*path, "metadata", field, name), name, value


def _check_reserved_prefix(spec: Spec) -> Iterator[Violation]:
    return (
        Violation(path, quote(name)) for path, name, _ in _find_metadata_entries(spec) if name.startswith(_OWN_DOMAIN)
    )


def _check_metadata_values(spec: Spec) -> Iterator[Violation]:
    return (
        Violation(path, _describe_kind(value))
        for path, _, value in _find_metadata_entries(spec)
        if not isinstance(value, str | None)
    )


def _check_names(spec: Spec) -> Iterator[Violation]:
    for path, pod in pods(spec):
        for field in (*CONTAINERS, "volumes"):
            yield from _find_unnamed(("name",), (*path, field), pod.get(field))
    for path, container in containers(spec):
        yield from _find_unnamed(("name",), (*path, "env"), container.get("env"))
        yield from _find_unnamed(("name", "mountPath"), (*path, "volumeMounts"), container.get("volumeMounts"))


def _find_unnamed(names: tuple[str, ...], path: FieldPath, entries: JSON) -> Iterator[Violation]:
    for index, entry in entries_of(entries):
        for name in names:
            if not isinstance(entry.get(name), str):
                yield Violation(
                    (*path, index), f"no {name}" if entry.get(name) is None else _describe_kind(entry[name])
                )


def _check_restart_policy(spec: Spec) -> Iterator[Violation]:
    for path, pod in pods(spec):
        if pod.get("restartPolicy") not in (None, "Never"):
            yield Violation((*path, "restartPolicy"), _describe_kind(pod["restartPolicy"]))


def _check_host_names(spec: Spec) -> Iterator[Violation]:
    for path, pod in pods(spec):
        for field in ("hostname", "subdomain"):
            if pod.get(field) is not None:
                yield Violation((*path, field), _describe_kind(pod[field]))


def _find_trainers(spec: Spec) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    return (entry for entry in containers(spec) if entry[1].get("name") == TRAINER)


def _check_second_command(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for field in ("command", "args"):
            if trainer.get(field) is not None:
                yield Violation((*path, field), _describe_kind(trainer[field]))


def _check_trainer_variables(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for index, variable in entries_of(trainer.get("env")):
            name = variable.get("name")
            if isinstance(name, str) and is_rendezvous_variable(name):
                yield Violation((*path, "env", index, "name"), name)


def _check_own_volumes(spec: Spec) -> Iterator[Violation]:
    for path, pod in pods(spec):
        yield from _check_volume_names((*path, "volumes"), pod.get("volumes"))
    for path, container in containers(spec):
        yield from _check_volume_names((*path, "volumeMounts"), container.get("volumeMounts"))


def _check_volume_names(path: FieldPath, entries: JSON) -> Iterator[Violation]:
    for index, entry in entries_of(entries):
        name = entry.get("name")
        if isinstance(name, str) and name.startswith(_OWN_VOLUMES):
            yield Violation((*path, index, "name"), quote(name))


def _check_own_folders(spec: Spec) -> Iterator[Violation]:
    for path, trainer in _find_trainers(spec):
        for index, mount in entries_of(trainer.get("volumeMounts")):
            folder = mount.get("mountPath")
            if isinstance(folder, str) and _is_reserved_folder(posixpath.normpath(f"/{folder.lstrip('/')}")):
                yield Violation((*path, "volumeMounts", index, "mountPath"), quote(folder))


def _is_reserved_folder(folder: str) -> bool:
    return folder in _WHOLE_FOLDERS or any(f"{folder}/".startswith(f"{reserved}/") for reserved in _OWN_FOLDERS)


_PLACES = ("spec.template", "spec.nodeOverrides[].template")

TEMPLATE_RULES = (
    Rule(
        schema_paths=_PLACES,
        why="muster merges several templates field by field.",
        message="write containers, volumes, env and other lists of a template as lists of fields, and metadata, spec,"
        " labels and securityContext as fields, as in a pod",
        find_violations=_check_shapes,
    ),
    Rule(
        schema_paths=_PLACES,
        why="muster sets the pod's name and owner; other fields would be lost.",
        message="a template may have metadata, with labels and annotations, and spec, as in a Deployment; remove it",
        find_violations=_check_other_parts,
    ),
    Rule(
        schema_paths=_PLACES,
        why="muster selects its pods by them.",
        message=f"the prefix {_OWN_DOMAIN} is reserved for muster; choose another prefix",
        find_violations=_check_reserved_prefix,
    ),
    Rule(
        schema_paths=_PLACES,
        why="The API server would reject every pod.",
        message="labels and annotations are text; quote it",
        find_violations=_check_metadata_values,
    ),
    Rule(
        schema_paths=_PLACES,
        why="muster merges entries of several templates by name.",
        message="each container, volume and variable needs a name, and each mount a name and a mountPath, as text",
        find_violations=_check_names,
    ),
    Rule(
        schema_paths=_PLACES,
        why="A rank that restarts alone would wait for peers that have continued.",
        message="the kubelet must not restart containers of a job; remove it, or write Never",
        find_violations=_check_restart_policy,
    ),
    Rule(
        schema_paths=_PLACES,
        why="The ranks find each other by these names.",
        message="muster names the pods algo-1, algo-2, ... below the job's Service; remove it",
        find_violations=_check_host_names,
    ),
    Rule(
        schema_paths=_PLACES,
        why="The container runs muster's agent, which runs spec.command.",
        message=f"the command of container {TRAINER} is spec.command, with spec.hyperparameters after it; remove it",
        find_violations=_check_second_command,
    ),
    Rule(
        schema_paths=_PLACES,
        why="Ranks with a world size or rendezvous other than their peers' wait forever.",
        message=f"muster sets this variable of container {TRAINER} itself; choose another name",
        find_violations=_check_trainer_variables,
    ),
    Rule(
        schema_paths=_PLACES,
        why="Two volumes with one name would become one.",
        message=f"names of volumes that begin with {_OWN_VOLUMES} are reserved; choose another name",
        find_violations=_check_own_volumes,
    ),
    Rule(
        schema_paths=_PLACES,
        why="It would hide the agent, or other mounts of muster.",
        message="muster mounts its agent at /muster, /muster-run, /muster-python and /muster-sync, and folders below"
        " /opt/ml; choose another place",
        find_violations=_check_own_folders,
    ),
)
