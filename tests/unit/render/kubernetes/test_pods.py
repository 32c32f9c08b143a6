"""The pods of a job, and that unusual pods don't disturb the operator."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.diagnose.kubernetes.pod_facts import derive_process_facts
from muster.objects.kubernetes.pods import read_pod
from muster.objects.kubernetes.warnings import read_warning
from unit.diagnose.kubernetes.pod_cases import JSONObject, names, part, source

JUNK: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def test_a_pod_is_read() -> None:
    pod = read_pod(source("oom-killed"))
    assert pod is not None
    assert (pod.name, pod.namespace, pod.node, pod.replacement) == ("vit-20-0", "vision", 20, 0)
    assert pod.job_uid == "0547f797-3806-4389-9fc3-5e4ddcd78539"
    assert (pod.kube_node, pod.phase, pod.spec_hash, pod.trainer.memory_limit) == ("node-2", "Failed", "abc", "30Mi")


def test_when_a_deletion_was_asked_for() -> None:
    pod = read_pod(source("deleted"))
    assert pod is not None
    # deletionTimestamp 13:47:44 is the end of its 600 s
    assert pod.deletion_requested_at == 1795268264.0


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "name"), "vit-020-0"),
        (("metadata", "name"), "vit-20--1"),
        (("metadata", "name"), f"vit-20-{'9' * 30}"),
        (("metadata", "name"), "vit-20"),
        (("metadata", "name"), "other-20-0"),
        (("metadata", "name"), "urgent"),
        (("metadata", "uid"), ""),
        (("metadata", "ownerReferences"), []),
        (("metadata", "ownerReferences", 0, "name"), "other"),
        (("metadata", "ownerReferences", 0, "uid"), ""),
        (("metadata", "ownerReferences", 0, "controller"), False),
        (("metadata", "ownerReferences", 0, "kind"), "Job"),
        (("metadata", "ownerReferences", 0, "apiVersion"), "example.com/v1"),
    ],
)
def test_a_pod_whose_owner_and_name_disagree_belongs_to_no_job(path: tuple[str | int, ...], value: JSON) -> None:
    pod = source("oom-killed")
    inner = part(pod, *path[:-1])
    assert isinstance(path[-1], str)
    inner[path[-1]] = value
    assert read_pod(pod) is None


@pytest.mark.parametrize("labels", [{}, {"muster.dev/node": "7", "muster.dev/job": "other"}, None])
def test_who_changes_a_pods_labels_changes_nothing(labels: JSON) -> None:
    pod = source("oom-killed")
    part(pod, "metadata")["labels"] = labels
    assert read_pod(pod) == read_pod(source("oom-killed"))


def _places(value: JSON, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    here = [path] if path else []
    if isinstance(value, dict):
        return here + [place for key, inner in value.items() for place in _places(inner, (*path, key))]
    if isinstance(value, list):
        return here + [place for index, inner in enumerate(value) for place in _places(inner, (*path, index))]
    return here


@given(name=st.sampled_from(names()), data=st.data(), junk=JUNK)
def test_no_shape_of_a_pod_disturbs_the_operator(name: str, data: st.DataObject, junk: JSON) -> None:
    pod = copy.deepcopy(source(name))
    place = data.draw(st.sampled_from(_places(pod)))
    _set(pod, place, junk)
    seen = read_pod(pod)
    if seen is not None:
        derive_process_facts(seen)


@given(st.dictionaries(st.sampled_from(["type", "reason", "message", "involvedObject"]), JUNK))
def test_no_shape_of_an_event_does_either(event: JSONObject) -> None:
    read_warning(event)


def _set(of: JSON, path: tuple[str | int, ...], value: JSON) -> None:
    for step in path[:-1]:
        of = of[step] if isinstance(of, list) and isinstance(step, int) else part(of)[str(step)]
    last = path[-1]
    if isinstance(of, list) and isinstance(last, int):
        of[last] = value
    else:
        part(of)[str(last)] = value


def test_a_pod_of_thousands_of_everything_is_cut_down() -> None:
    """A tenant's pod may have 1.5 MiB, and a job as its owner."""
    pod = source("running")
    spec, status = part(pod, "spec"), part(pod, "status")
    trainer = part(spec, "containers", 0)
    more: list[JSON] = [{"name": f"c{number}", "image": "x" * 5_000} for number in range(3_000)]
    spec["containers"] = [*more, trainer]
    spec["volumes"] = [{"persistentVolumeClaim": {"claimName": f"v{number}"}} for number in range(3_000)]
    status["conditions"] = [{"type": f"T{number}", "message": "x" * 5_000} for number in range(3_000)]
    seen = read_pod(pod)
    assert seen is not None
    assert (seen.trainer.name, seen.trainer.image) == (trainer["name"], trainer["image"])
    assert len(seen.other_containers) < 64
    assert max(len(seen.volume_claims), len(seen.conditions)) <= 64
    assert max(len(one.image) for one in seen.other_containers) <= 1024
    assert seen.memory_bytes > 64 * 2048


def test_a_number_beyond_the_largest_jobs_nodes_belongs_to_no_job() -> None:
    pod = source("running")
    metadata = part(pod, "metadata")
    owner = part(metadata, "ownerReferences", 0)["name"]
    for node, is_jobs in ((10_099, True), (10_100, False)):
        metadata["name"] = f"{owner}-{node}-0"
        assert (read_pod(pod) is not None) is is_jobs
