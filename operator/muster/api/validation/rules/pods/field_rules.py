"""Rules about partial pod templates of jobs that haven't started: a pod's field names and types, misspelt containers.

They are not among `LASTING_RULES`: a job that runs was accepted under older rules and continues.
"""

from collections.abc import Iterator
from itertools import islice

from muster.api.document import JSON, Path, quoted
from muster.api.names import TRAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules.pods.fields import WrongField, wrong_fields
from muster.api.validation.rules.pods.schema import pod_schema
from muster.api.validation.rules.pods.template_shape import NAMED, entries_of, misshapen, pods

_MOST = 20
"""How many fields one message names: a template may have thousands, and finding a suggestion for each takes time."""

_NEAR = 2
"""Maximum edit distance at which a name counts as a misspelt `trainer`."""


def _wrong(spec: Spec) -> Iterator[WrongField]:
    """Find wrong fields of the pods, without those that the rules for every job report."""
    misshapen_paths = {path for path, _ in misshapen(spec)}
    result = (wrong for path, pod in pods(spec) for wrong in wrong_fields(pod, path))
    return (wrong for wrong in result if wrong.path not in misshapen_paths and not _is_name(wrong.path))


def _is_name(path: Path) -> bool:
    return path[-1] in ("name", "mountPath") and isinstance(path[-2], int) and path[-3] in NAMED


def _not_as_in_a_pod(spec: Spec) -> Iterator[Breach]:
    for wrong in islice(_wrong(spec), _MOST):
        yield Breach(wrong.path, _describe_wrong(wrong))


def _describe_wrong(wrong: WrongField) -> str:
    if wrong.expected is not None:
        return f"{_shown(wrong.value)} where {wrong.expected} expected"
    nearest = wrong.nearest
    return quoted(str(wrong.path[-1])) + ("" if nearest is None else f" (did you mean {nearest}?)")


def _shown(value: JSON) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"the text {quoted(value)}"
        case list():
            return "a list"
        case dict():
            return "fields"
        case _:
            return str(value)


def _nearly_the_trainer(spec: Spec) -> Iterator[Breach]:
    for path, pod in pods(spec):
        for index, container in entries_of(pod.get("containers")):
            name = container.get("name")
            if isinstance(name, str) and 0 < _distance(name, TRAINER, _NEAR) <= _NEAR:
                yield Breach((*path, "containers", index, "name"), quoted(name))


def _distance(one: str, other: str, most: int) -> int:
    """The Levenshtein distance of two words, at most `most` + 1."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, wanted in enumerate(other, 1):
            replaced = before[column - 1] + (letter != wanted)
            current.append(min(before[column] + 1, current[-1] + 1, replaced))
        before = current
    return min(before[-1], most + 1)


_PLACES = ("spec.template", "spec.nodeOverrides[].template")

POD_FIELD_RULES = (
    Rule(
        places=_PLACES,
        why="The API server would reject every pod.",
        sentence="fields of a template have the names and types of a pod's fields in Kubernetes"
        f" {pod_schema().kubernetes}, the newest version that this muster supports; correct it",
        breaches=_not_as_in_a_pod,
    ),
    Rule(
        places=_PLACES,
        why="A container of another name is a sidecar, and the ranks would run without its settings.",
        sentence=f"the container of the ranks is {TRAINER}; write that, or give a sidecar a name that can't be mistaken"
        " for it",
        breaches=_nearly_the_trainer,
    ),
)
