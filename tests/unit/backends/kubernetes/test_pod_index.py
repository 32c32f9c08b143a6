"""A job's pods at any moment, the pod of a token, and the records about deleted pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.backends.kubernetes.pending_warnings import MAX_PODS, MAX_PODS_TOTAL
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Change, ChangeType
from muster.collector.memory_limits import MemoryLimits
from muster.collector.pod_directory import PodIdentity
from muster.core.facts import ProcessState
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.pods import PodView, read_pod
from unit.core.builders import START
from unit.render.kubernetes.cluster_jobs import UID, cluster_job, rendered

JOB = cluster_job()


def _pod(node: int, replacement: int = 0, uid: str = "", namespace: str = "team", **status: JSON) -> Object:
    pod = rendered(JOB, node, replacement)
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    metadata["uid"] = uid or f"pod-{node}-{replacement}"
    metadata["namespace"] = namespace
    pod["status"] = {"phase": "Pending", **status}
    return pod


def _view(node: int, replacement: int = 0, uid: str = "") -> PodView:
    pod = read_pod(_pod(node, replacement, uid))
    assert pod is not None
    return pod


def _warning(
    uid: str, message: str = "MountVolume.SetUp failed", reason: str = "FailedMount", namespace: str = "team"
) -> Change:
    event: Object = {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "metadata": {"namespace": namespace},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "uid": uid},
    }
    return Change("ADDED", event)


class Index(PodIndex):
    """An index with a known job, and its reports."""

    def __init__(self) -> None:
        self.told: list[str] = []
        super().__init__(self.told.append, lambda: START)
        self.expect(UID, "team")

    def tell(self, kind: ChangeType, pod: Object) -> None:
        self.handle_change(Change(kind, pod))


def test_a_pod_without_its_jobs_label_is_missing() -> None:
    index = Index()
    pod = _pod(0)
    index.tell("ADDED", pod)
    del index.told[:]
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    index.tell("MODIFIED", {**pod, "metadata": {**metadata, "ownerReferences": []}})
    assert index.told == [UID]
    assert (index.get_newest_pod(UID, 0), index.find("pod-0-0")) == (None, None)
    assert index.get_last_pod(UID, 0) is not None
    # its further state is no longer relevant
    index.tell("DELETED", {**pod, "metadata": {**metadata, "ownerReferences": []}})
    assert index.told == [UID]


def test_a_pods_token_is_its_nodes_while_it_is_the_newest() -> None:
    index = Index()
    index.tell("ADDED", _pod(0))
    assert index.find("pod-0-0") == PodIdentity(UID, 0, 0)
    index.tell("ADDED", _pod(0, 1))
    assert index.find("pod-0-0") is None
    assert index.find("pod-0-1") == PodIdentity(UID, 0, 1)
    index.tell("DELETED", _pod(0, 1))
    assert index.find("pod-0-1") is None
    assert index.told == [UID] * 3


def test_a_pod_of_another_namespace_belongs_to_no_job() -> None:
    index = Index()
    index.tell("ADDED", _pod(0, namespace="other"))
    assert index.find("pod-0-0") is None
    assert index.list_pods(UID) == ()
    assert index.get_highest_replacement_number(UID, 0) == -1


def test_pods_may_be_known_before_their_job() -> None:
    index = PodIndex(lambda _: None, lambda: START)
    index.handle_change(Change("ADDED", _pod(1)))
    assert index.find("pod-1-0") is None
    index.expect(UID, "team")
    assert index.find("pod-1-0") == PodIdentity(UID, 1, 0)


def test_older_pods_and_those_beyond_the_nodes_are_surplus() -> None:
    index = Index()
    for node, replacement in ((0, 0), (0, 2), (1, 0), (5, 0)):
        index.tell("ADDED", _pod(node, replacement))
    assert {known.pod.name for known in index.list_surplus_pods(UID, 2)} == {"vit-0-0", "vit-5-0"}


def test_the_highest_replacement_outlives_its_pod() -> None:
    index = Index()
    index.tell("ADDED", _pod(0, 3))
    index.tell("DELETED", _pod(0, 3))
    assert index.get_newest_pod(UID, 0) is None
    assert index.get_highest_replacement_number(UID, 0) == 3


def test_how_a_pod_ended_is_remembered_though_it_went_unseen() -> None:
    index = Index()
    index.tell("MODIFIED", _pod(0, phase="Failed", reason="Evicted", message="low on memory"))
    # after a gap the informer has only the object's identity
    remains = {"metadata": _pod(0)["metadata"]}
    index.tell("DELETED", remains)
    last = index.get_last_pod(UID, 0)
    assert last is not None
    assert last.process.problem is not None
    assert last.process.problem.reason == "Evicted"


def test_a_created_pod_is_known_before_the_informer_tells() -> None:
    index = Index()
    index.add_created(_view(0), 100.0)
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert newest.process.state is ProcessState.WAITING
    assert [known.unconfirmed_since for known in index.list_unconfirmed_pods(UID)] == [100.0]
    index.tell("ADDED", _pod(0))
    assert index.list_unconfirmed_pods(UID) == ()


def test_an_older_response_does_not_replace_the_informers_report() -> None:
    index = Index()
    index.tell("MODIFIED", _pod(0, phase="Failed"))
    index.add_created(_view(0), 100.0)
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert newest.pod.phase == "Failed"
    index.tell("DELETED", _pod(0))
    index.add_created(_view(0), 101.0)
    assert index.get_newest_pod(UID, 0) is None


def test_only_an_unreported_pod_can_be_lost() -> None:
    index = Index()
    index.add_created(_view(0), 100.0)
    index.add_created(_view(1), 100.0)
    index.tell("ADDED", _pod(1))
    index.remove_unconfirmed(_view(0))
    index.remove_unconfirmed(_view(1))
    assert [known.pod.node for known in index.list_pods(UID)] == [1]


def test_another_pod_of_the_same_name_replaces_the_first() -> None:
    index = Index()
    index.tell("ADDED", _pod(0, uid="first"))
    index.tell("ADDED", _pod(0, uid="second"))
    assert index.find("first") is None
    assert index.find("second") == PodIdentity(UID, 0, 0)


def test_a_warning_may_come_before_its_pod_and_goes_with_it() -> None:
    index = Index()
    index.handle_event(_warning("pod-0-0", 'MountVolume.SetUp failed for volume "d" : no such device'))
    index.tell("ADDED", _pod(0))
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert newest.process.problem is not None
    assert newest.process.problem.reason == "VolumeNotMounted"
    index.tell("DELETED", _pod(0))
    index.tell("ADDED", _pod(0))
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert newest.warnings == ()


def test_only_news_is_reported() -> None:
    index = Index()
    index.tell("ADDED", _pod(0))
    index.told.clear()
    index.handle_event(_warning("pod-0-0"))
    index.handle_event(_warning("pod-0-0"))
    index.handle_event(_warning("pod-0-0", reason="Unhealthy"))
    index.handle_event(_warning("of-somebody-else"))
    assert index.told == [UID]


def test_warnings_take_a_bounded_memory() -> None:
    index = Index()
    for number in range(MAX_PODS + 10):
        index.handle_event(_warning(f"pod-{number}"))
    assert len(index._pending_warnings) == MAX_PODS


def test_warnings_of_many_namespaces_take_a_bounded_memory_and_leave_others_theirs() -> None:
    index = Index()
    index.handle_event(_warning("pod-0-0"))
    for number in range(MAX_PODS_TOTAL + 2 * MAX_PODS):
        index.handle_event(_warning(f"pod-{number}", namespace=f"evil-{number // MAX_PODS}"))
    assert len(index._pending_warnings) == MAX_PODS_TOTAL
    index.tell("ADDED", _pod(0))
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert len(newest.warnings) == 1
    assert len(index._pending_warnings) == MAX_PODS_TOTAL - 1


def test_a_pod_of_another_namespace_does_not_wake_the_job_that_it_names_as_owner() -> None:
    index = Index()
    index.tell("ADDED", _pod(0, uid="false", namespace="evil"))
    index.handle_event(_warning("false", namespace="evil"))
    index.tell("DELETED", _pod(0, uid="false", namespace="evil"))
    assert index.told == []
    index.tell("ADDED", _pod(0))
    assert index.told == [UID]


def test_a_warning_of_another_namespace_affects_no_job() -> None:
    """Anybody who may write Events in a namespace can put any pod's uid into them."""
    index = Index()
    index.tell("ADDED", _pod(0))
    index.told.clear()
    elsewhere: dict[str, JSON] = {**_warning("pod-0-0").object, "metadata": {"namespace": "evil"}}
    index.handle_event(Change("ADDED", elsewhere))
    about: dict[str, JSON] = {"kind": "Pod", "namespace": "evil", "uid": "pod-0-0"}
    index.handle_event(Change("ADDED", {**elsewhere, "involvedObject": about}))
    newest = index.get_newest_pod(UID, 0)
    assert newest is not None
    assert (newest.warnings, index.told) == ((), [])
    # ... nor one that arrives before the pod does.
    index.handle_event(Change("ADDED", {**elsewhere, "involvedObject": {**about, "uid": "pod-1-0"}}))
    index.tell("ADDED", _pod(1))
    newest = index.get_newest_pod(UID, 1)
    assert newest is not None
    assert newest.warnings == ()


def test_pods_beyond_the_room_of_their_namespace_are_not_there(caplog: pytest.LogCaptureFixture) -> None:
    index = Index()
    index.tell("ADDED", _pod(0))
    one = index.memory_limits.get_used("team")
    index.tell("DELETED", _pod(0))
    index.forget(UID)
    index.expect(UID, "team")
    index.memory_limits = MemoryLimits(per_namespace=3 * one, total=100 * one, guaranteed=0)
    for node in range(4):
        index.tell("ADDED", _pod(node))
    assert [known.pod.node for known in index.list_pods(UID)] == [0, 1, 2]
    assert [line for line in caplog.messages if "muster skips Pod team/vit-3-0" in line]
    index.tell("ADDED", _pod(0, namespace="other"))
    assert index.memory_limits.get_used("other") == one
    # A pod that grows beyond the limit is removed like a deleted one; its record is kept only if there is room.
    index.tell("MODIFIED", _pod(0, message="x" * 1000))
    assert index.get_newest_pod(UID, 0) is None
    for node in range(4):
        index.tell("DELETED", _pod(node))
    index.forget(UID)
    assert index.memory_limits.get_used("team") == 0


def test_a_pods_share_grows_with_what_is_warned_of_it() -> None:
    index = Index()
    index.tell("ADDED", _pod(0))
    before = index.memory_limits.get_used("team")
    index.handle_event(_warning("pod-0-0", "x" * 5_000))
    assert before < index.memory_limits.get_used("team") < before + 5_000
    index.tell("DELETED", _pod(0))
    index.forget(UID)
    assert index.memory_limits.get_used("team") == 0


def test_a_forgotten_job_leaves_nothing() -> None:
    index = Index()
    index.tell("ADDED", _pod(0))
    index.tell("ADDED", _pod(1))
    index.forget(UID)
    assert index.find("pod-0-0") is None
    # pods that the garbage collector deletes afterwards
    index.tell("ADDED", _pod(2))
    index.tell("DELETED", _pod(2))
    assert (index._entries, index._positions, index._namespaces) == ({}, {}, {})


STEPS = st.lists(
    st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), st.integers(0, 2), st.integers(0, 2)), max_size=30
)


@given(STEPS)
def test_the_index_agrees_with_the_api_server(steps: list[tuple[ChangeType, int, int]]) -> None:
    index, there, visited = Index(), set[tuple[int, int]](), set[tuple[int, int]]()
    for kind, node, replacement in steps:
        index.tell(kind, _pod(node, replacement))
        if kind == "DELETED":
            there.discard((node, replacement))
        else:
            there.add((node, replacement))
            visited.add((node, replacement))
    assert {(known.pod.node, known.pod.replacement) for known in index.list_pods(UID)} == there
    for node in range(3):
        newest = max((replacement for at, replacement in there if at == node), default=None)
        for replacement in range(3):
            expected = PodIdentity(UID, node, replacement) if replacement == newest else None
            assert index.find(f"pod-{node}-{replacement}") == expected
        assert index.get_highest_replacement_number(UID, node) == max(
            (replacement for at, replacement in visited if at == node), default=-1
        )
