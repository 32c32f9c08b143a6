"""Pods as a real cluster reported them (Kubernetes 1.34), each with its warnings."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

from muster.api.document import JSON
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.pods import PodView, read_pod
from muster.objects.kubernetes.warnings import PodWarning, read_warning

_CASES = Path(__file__).parent / "pods"

JSONObject = dict[str, JSON]


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _CASES.glob("*.json")))


def source(name: str) -> JSONObject:
    """Return the pod's object, which a test may change."""
    return part(_case(name), "pod")


def events(name: str) -> list[Object]:
    """Events of the pod's namespace, as the API server requires."""
    result = _case(name)["events"]
    assert isinstance(result, list)
    place: JSONObject = {"namespace": part(_case(name), "pod", "metadata")["namespace"]}
    return [
        {**event, "metadata": place, "involvedObject": {**part(event, "involvedObject"), **place}}
        for event in result
        if isinstance(event, dict)
    ]


def view(name: str) -> PodView:
    pod = read_pod(source(name))
    assert pod is not None
    return pod


def warned(name: str) -> tuple[PodWarning, ...]:
    result = (read_warning(event) for event in events(name))
    return tuple(one for one in result if one is not None)


def changed(name: str, change: Callable[[JSONObject], None]) -> PodView:
    """Return the pod after `change` of its object."""
    pod = copy.deepcopy(source(name))
    change(pod)
    seen = read_pod(pod)
    assert seen is not None
    return seen


def part(of: JSON, *path: str | int) -> JSONObject:
    """Return the object at `path`."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(of, list)
            of = of[step]
        else:
            assert isinstance(of, dict)
            of = of[step]
    assert isinstance(of, dict)
    return of


def _case(name: str) -> JSONObject:
    return part(json.loads((_CASES / f"{name}.json").read_text(encoding="utf-8")))
