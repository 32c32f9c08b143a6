"""Rules about partial pod templates: they may not contain what muster sets itself.

Templates have no schema, so CEL can't validate them: the operator refuses a wrong one with Accepted=False.
"""

import posixpath
from collections.abc import Iterator

from muster.api.document import JSON, Path, quoted
from muster.api.json_fields import mapping
from muster.api.names import TRAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules.pods.template_shape import (
    CONTAINERS,
    containers,
    entries_of,
    misshapen,
    pods,
    templates,
)
from muster_worker.contract.rendezvous import is_rendezvous_variable

_OWN_DOMAIN = "muster.dev/"
_OWN_VOLUMES = "muster"
_OWN_FOLDERS = ("/muster", "/muster-run", "/muster-python", "/muster-sync")
_WHOLE_FOLDERS = ("/", "/opt/ml")
"""A mount here would hide what muster mounts below."""


def _shapes(spec: Spec) -> Iterator[Breach]:
    for path, value in misshapen(spec):
        yield Breach(path, _kind(value))


def _kind(value: JSON) -> str:
    if isinstance(value, dict | list):
        return "fields" if isinstance(value, dict) else "a list"
    return "null" if value is None else quoted(str(value))


def _other_parts(spec: Spec) -> Iterator[Breach]:
    for path, template in templates(spec):
        metadata = mapping(template.get("metadata"))
        yield from (Breach((*path, name), quoted(name)) for name in template if name not in ("metadata", "spec"))
        yield from (
            Breach((*path, "metadata", name), quoted(name))
            for name in metadata
            if name not in ("labels", "annotations")
        )


def _marks(spec: Spec) -> Iterator[tuple[Path, str, JSON]]:
    for path, template in templates(spec):
        for field in ("labels", "annotations"):
            for name, value in mapping(mapping(template.get("metadata")).get(field)).items():
                yield (*path, "metadata", field, name), name, value


def _own_marks(spec: Spec) -> Iterator[Breach]:
    return (Breach(path, quoted(name)) for path, name, _ in _marks(spec) if name.startswith(_OWN_DOMAIN))


def _mark_values(spec: Spec) -> Iterator[Breach]:
    return (Breach(path, _kind(value)) for path, _, value in _marks(spec) if not isinstance(value, str | None))


def _nameless(spec: Spec) -> Iterator[Breach]:
    for path, pod in pods(spec):
        for field in (*CONTAINERS, "volumes"):
            yield from _without(("name",), (*path, field), pod.get(field))
    for path, container in containers(spec):
        yield from _without(("name",), (*path, "env"), container.get("env"))
        yield from _without(("name", "mountPath"), (*path, "volumeMounts"), container.get("volumeMounts"))


def _without(names: tuple[str, ...], path: Path, entries: JSON) -> Iterator[Breach]:
    for index, entry in entries_of(entries):
        for name in names:
            if not isinstance(entry.get(name), str):
                yield Breach((*path, index), f"no {name}" if entry.get(name) is None else _kind(entry[name]))


def _restarts(spec: Spec) -> Iterator[Breach]:
    for path, pod in pods(spec):
        if pod.get("restartPolicy") not in (None, "Never"):
            yield Breach((*path, "restartPolicy"), _kind(pod["restartPolicy"]))


def _host_names(spec: Spec) -> Iterator[Breach]:
    for path, pod in pods(spec):
        for field in ("hostname", "subdomain"):
            if pod.get(field) is not None:
                yield Breach((*path, field), _kind(pod[field]))


def _trainers(spec: Spec) -> Iterator[tuple[Path, dict[str, JSON]]]:
    return (entry for entry in containers(spec) if entry[1].get("name") == TRAINER)


def _second_command(spec: Spec) -> Iterator[Breach]:
    for path, trainer in _trainers(spec):
        for field in ("command", "args"):
            if trainer.get(field) is not None:
                yield Breach((*path, field), _kind(trainer[field]))


def _trainer_variables(spec: Spec) -> Iterator[Breach]:
    for path, trainer in _trainers(spec):
        for index, variable in entries_of(trainer.get("env")):
            name = variable.get("name")
            if isinstance(name, str) and is_rendezvous_variable(name):
                yield Breach((*path, "env", index, "name"), name)


def _own_volumes(spec: Spec) -> Iterator[Breach]:
    for path, pod in pods(spec):
        yield from _own_names((*path, "volumes"), pod.get("volumes"))
    for path, container in containers(spec):
        yield from _own_names((*path, "volumeMounts"), container.get("volumeMounts"))


def _own_names(path: Path, entries: JSON) -> Iterator[Breach]:
    for index, entry in entries_of(entries):
        name = entry.get("name")
        if isinstance(name, str) and name.startswith(_OWN_VOLUMES):
            yield Breach((*path, index, "name"), quoted(name))


def _own_folders(spec: Spec) -> Iterator[Breach]:
    for path, trainer in _trainers(spec):
        for index, mount in entries_of(trainer.get("volumeMounts")):
            folder = mount.get("mountPath")
            if isinstance(folder, str) and _is_own(posixpath.normpath(f"/{folder.lstrip('/')}")):
                yield Breach((*path, "volumeMounts", index, "mountPath"), quoted(folder))


def _is_own(folder: str) -> bool:
    return folder in _WHOLE_FOLDERS or any(f"{folder}/".startswith(f"{own}/") for own in _OWN_FOLDERS)


_PLACES = ("spec.template", "spec.nodeOverrides[].template")

TEMPLATE_RULES = (
    Rule(
        places=_PLACES,
        why="muster merges several templates field by field.",
        sentence="write containers, volumes, env and other lists of a template as lists of fields, and metadata, spec,"
        " labels and securityContext as fields, as in a pod",
        breaches=_shapes,
    ),
    Rule(
        places=_PLACES,
        why="muster sets the pod's name and owner; other fields would be lost.",
        sentence="a template may have metadata, with labels and annotations, and spec, as in a Deployment; remove it",
        breaches=_other_parts,
    ),
    Rule(
        places=_PLACES,
        why="muster selects its pods by them.",
        sentence=f"the prefix {_OWN_DOMAIN} is reserved for muster; choose another prefix",
        breaches=_own_marks,
    ),
    Rule(
        places=_PLACES,
        why="The API server would reject every pod.",
        sentence="labels and annotations are text; quote it",
        breaches=_mark_values,
    ),
    Rule(
        places=_PLACES,
        why="muster merges entries of several templates by name.",
        sentence="each container, volume and variable needs a name, and each mount a name and a mountPath, as text",
        breaches=_nameless,
    ),
    Rule(
        places=_PLACES,
        why="A rank that restarts alone would wait for peers that have continued.",
        sentence="the kubelet must not restart containers of a job; remove it, or write Never",
        breaches=_restarts,
    ),
    Rule(
        places=_PLACES,
        why="The ranks find each other by these names.",
        sentence="muster names the pods algo-1, algo-2, ... below the job's Service; remove it",
        breaches=_host_names,
    ),
    Rule(
        places=_PLACES,
        why="The container runs muster's agent, which runs spec.command.",
        sentence=f"the command of container {TRAINER} is spec.command, with spec.hyperparameters after it; remove it",
        breaches=_second_command,
    ),
    Rule(
        places=_PLACES,
        why="Ranks with a world size or rendezvous other than their peers' wait forever.",
        sentence=f"muster sets this variable of container {TRAINER} itself; choose another name",
        breaches=_trainer_variables,
    ),
    Rule(
        places=_PLACES,
        why="Two volumes with one name would become one.",
        sentence=f"names of volumes that begin with {_OWN_VOLUMES} are reserved; choose another name",
        breaches=_own_volumes,
    ),
    Rule(
        places=_PLACES,
        why="It would hide the agent, or other mounts of muster.",
        sentence="muster mounts its agent at /muster, /muster-run, /muster-python and /muster-sync, and folders below"
        " /opt/ml; choose another place",
        breaches=_own_folders,
    ),
)
