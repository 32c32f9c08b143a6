"""A node's state by its pod, and the status of a pod with a problem."""

import pytest

from muster.core.facts import ProcessState
from muster.core.problem import Problem
from muster.diagnose.kubernetes.pod_facts import derive_process_facts
from muster.objects.kubernetes.observations import observe_pod
from support.rows import check_rows
from unit.diagnose.kubernetes import pod_cases
from unit.diagnose.kubernetes.pod_cases import JSONObject, changed, part, view, warned

WAITING, RUNNING, EXITED = ProcessState.WAITING, ProcessState.RUNNING, ProcessState.EXITED

CASES = [
    ("running", RUNNING, None, None),
    ("init-running", WAITING, None, None),
    ("done", EXITED, None, None),
    ("exit-3", EXITED, None, None),
    ("done-beside-sidecar", EXITED, None, None),
    ("unschedulable-gpu", WAITING, "Unschedulable", "none of 2 nodes has room: 2 lack nvidia.com/gpu"),
    (
        "unschedulable-selector",
        WAITING,
        "Unschedulable",
        "none of 2 nodes fits: 2 don't match its node selector or node affinity",
    ),
    (
        "unschedulable-mixed",
        WAITING,
        "Unschedulable",
        "none of 2 nodes has room: 1 lack cpu, 1 lack memory, 1 don't match its node selector or node affinity",
    ),
    (
        "claim-missing",
        WAITING,
        "VolumeClaimMissing",
        "PersistentVolumeClaim images doesn't exist in namespace vision: create it",
    ),
    (
        "claim-unbound",
        WAITING,
        "Unschedulable",
        (
            "no volume is bound to PersistentVolumeClaim unbound: `kubectl describe pvc` tells why; its storage class "
            "may be missing or out of space"
        ),
    ),
    (
        "scheduling-gated",
        WAITING,
        "SchedulingGated",
        (
            "Kueue does not manage the pods of namespace vision: Kueue's configuration has to list the integration "
            "pod, and its managedJobsNamespaceSelector has to select the namespace"
        ),
    ),
    (
        "image-missing",
        WAITING,
        "ImagePullFailed",
        (
            "image registry.invalid/vit:9 can't be fetched: lookup registry.invalid on 10.96.0.10:53: read from "
            "10.96.0.10:53: i/o timeout"
        ),
    ),
    (
        "image-never",
        WAITING,
        "ImageNotFound",
        ("image cluster.muster.dev/none:1 is not on node-1, and imagePullPolicy is Never: load it there"),
    ),
    ("image-invalid", WAITING, "InvalidImageName", "'Bad Name' is not an image name: correct spec.image"),
    (
        "secret-env-missing",
        WAITING,
        "ConfigMissing",
        "Secret aws doesn't exist in namespace vision, and container trainer reads a variable from it: create it",
    ),
    (
        "secret-key-missing",
        WAITING,
        "ConfigMissing",
        "ConfigMap kube-root-ca.crt has no key k, and container trainer reads a variable from it: create it",
    ),
    (
        "secret-volume-missing",
        WAITING,
        "ConfigMissing",
        "Secret aws doesn't exist in namespace vision, and volume d contains it: create it",
    ),
    (
        "configmap-volume-missing",
        WAITING,
        "ConfigMissing",
        "ConfigMap settings doesn't exist in namespace vision, and volume d contains it: create it",
    ),
    (
        "hostpath-missing",
        WAITING,
        "VolumeNotMounted",
        "volume d can't be mounted on node-1: hostPath type check failed: /data/images is not a directory",
    ),
    (
        "nfs-missing",
        WAITING,
        "VolumeNotMounted",
        "volume d can't be mounted on node-2: mount: unknown filesystem type 'nfs'",
    ),
    (
        "sandbox-failed",
        WAITING,
        "SandboxFailed",
        (
            "node-2 can't set up the pod: Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "
            '"none" is configured'
        ),
    ),
    (
        "run-as-root",
        WAITING,
        "ContainerNotStarted",
        "container trainer: container has runAsNonRoot and image will run as root",
    ),
    (
        "no-python",
        EXITED,
        "AgentNeedsPython",
        (
            "image cluster.muster.dev/pause:1 has no python3, which muster's agent needs: set spec.agent.inject to "
            "InitContainer, which provides Python, or use an image with Python 3.8 or later"
        ),
    ),
    (
        "not-executable",
        EXITED,
        "ContainerNotStarted",
        'container trainer could not be started: exec: "/etc/passwd": permission denied',
    ),
    (
        "bad-workdir",
        EXITED,
        "ContainerNotStarted",
        "container trainer could not be started: error during container init: mkdir /etc/passwd: not a directory",
    ),
    (
        "oom-killed",
        EXITED,
        "OOMKilled",
        "container trainer ran out of memory; its limit is 30Mi: raise spec.resources.limits.memory",
    ),
    (
        "killed",
        EXITED,
        "ContainerKilled",
        "container trainer was killed as a whole with SIGKILL: it ran out of memory, or it was killed on node-1",
    ),
    ("init-failed", EXITED, "InitContainerFailed", "init container fetch failed with exit code 1: no such bucket"),
    (
        "sidecar-init-crash",
        WAITING,
        "SidecarFailed",
        "container proxy failed with exit code 3: `kubectl logs vit-25-0 -c proxy` may tell why",
    ),
    (
        "container-failed",
        RUNNING,
        "SidecarFailed",
        "container proxy failed with exit code 3: `kubectl logs vit-26-0 -c proxy` may tell why",
    ),
    (
        "deadline",
        EXITED,
        "PodDeadlineExceeded",
        "spec.template.spec.activeDeadlineSeconds is over; muster's own is spec.activeDeadlineSeconds",
    ),
    (
        "out-of-cpu",
        EXITED,
        "RefusedByKubelet",
        (
            "node-1 refused it (OutOfcpu): Node didn't have enough resource: cpu, requested: 64000, used: 11, "
            "capacity: 2000"
        ),
    ),
    (
        "node-affinity",
        EXITED,
        "RefusedByKubelet",
        (
            "node-1 refused it (NodeAffinity): Predicate NodeAffinity failed: node(s) didn't match Pod's node "
            "affinity/selector"
        ),
    ),
    ("deleted", RUNNING, "PodDeleted", "pod vit-34-0 was deleted, and not by muster"),
    ("evicted-by-api", RUNNING, "Evicted", "it was evicted, as by `kubectl drain node-2`"),
    ("preempted", RUNNING, "Preempted", "a pod of a higher priority took its place on node-2"),
]


def test_a_pod_of_a_real_cluster() -> None:
    def check_row(name: str, state: ProcessState, reason: str | None, message: str | None) -> None:
        facts = derive_process_facts(view(name), warned(name))
        assert facts.state is state
        value = facts.problem
        assert (None if value is None else value.reason, None if value is None else value.message) == (reason, message)

    check_rows(CASES, lambda row: check_row(*row))


def test_a_pod_whose_init_container_failed_is_over_before_its_phase_says_so() -> None:
    def is_pending(pod: JSONObject) -> None:
        part(pod, "status")["phase"] = "Pending"

    assert derive_process_facts(changed("init-failed", is_pending)).state is EXITED


@pytest.mark.parametrize(("name", "leaves"), [("deleted", True), ("evicted-by-api", True), ("init-failed", False)])
def test_a_deleted_pod_is_missing_soon(name: str, *, leaves: bool) -> None:
    assert derive_process_facts(view(name)).is_terminating is leaves


def test_every_captured_pod_is_in_the_table() -> None:
    assert sorted(case[0] for case in CASES) == list(pod_cases.names())


@pytest.mark.parametrize(
    ("name", "exit_code", "signal"),
    [
        ("done", 0, None),
        ("exit-3", 3, None),
        ("oom-killed", None, 9),
        ("running", None, None),
        ("no-python", 128, None),
    ],
)
def test_exit_codes_and_signals(name: str, exit_code: int | None, signal: int | None) -> None:
    facts = derive_process_facts(view(name))
    assert (facts.exit_code, facts.signal) == (exit_code, signal)


def test_times_places_and_names() -> None:
    facts = derive_process_facts(view("exit-3"))
    assert facts.started_at == 1795268220.0  # 2026-11-21T13:37:00Z
    assert facts.ended_at == 1795268220.0
    assert facts.scheduled_at == 1795268220.0
    assert (facts.name, facts.kube_node, facts.replacement) == ("vit-32-0", "node-1", 0)


def test_what_never_began_has_no_start() -> None:
    # the kubelet writes 1970
    assert derive_process_facts(view("no-python")).started_at is None
    assert derive_process_facts(view("init-failed")).ended_at is not None


def test_a_refused_pod_without_conditions_ends_when_the_operator_observes_it() -> None:
    # template.spec.nodeName bypasses the scheduler, and its condition.
    status = {**_pod_failed("OutOfcpu", "Pod was rejected"), "conditions": [], "containerStatuses": []}
    pod = changed("running", lambda body: part(body, "status").update(status))
    first = observe_pod(pod, None, 100.0)
    assert derive_process_facts(pod, observations=first).ended_at == 100.0
    assert derive_process_facts(pod, observations=observe_pod(pod, first, 130.0)).ended_at == 100.0


def test_what_runs_beside_an_agent_that_has_left_is_seen() -> None:
    assert derive_process_facts(view("done-beside-sidecar")).has_running_sidecars
    assert not derive_process_facts(view("done")).has_running_sidecars
    assert not derive_process_facts(view("container-failed")).has_running_sidecars


def test_the_termination_message_is_read_from_the_termination_log() -> None:
    def say(pod: JSONObject) -> None:
        ended = part(pod, "status", "containerStatuses", 0, "state", "terminated")
        ended["message"] = '{"jobUid": "3a5c", "node": 0, "replacement": 0, "attempt": 1, "ranks": 2, "succeeded": 1}'

    word = derive_process_facts(changed("exit-3", say)).termination_message
    assert word is not None
    assert (word.ranks, word.succeeded) == (2, 1)


def _pod_failed(reason: str, message: str) -> JSONObject:
    return {"phase": "Failed", "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (
            _pod_failed("Evicted", 'Usage of EmptyDir volume "d" exceeds the limit "1Mi". '),
            Problem("Evicted", 'node-2 evicted it: Usage of EmptyDir volume "d" exceeds the limit "1Mi"'),
        ),
        (
            _pod_failed("Terminated", "Pod was terminated in response to imminent node shutdown."),
            Problem("NodeShutdown", "node-2 shuts down"),
        ),
        (
            {"phase": "Unknown", "reason": "NodeLost", "message": "Node node-2 which was running pod is unresponsive"},
            Problem("NodeLost", "node-2 lost the pod: it was cut off, restarted or removed"),
        ),
        (
            _pod_failed("UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to no healthy devices"),
            Problem(
                "RefusedByKubelet",
                "node-2 refused it (UnexpectedAdmissionError): Allocate failed due to no healthy devices",
            ),
        ),
    ],
)
def test_what_the_kubelet_says_of_the_whole_pod_ends_it(status: JSONObject, problem: Problem) -> None:
    facts = derive_process_facts(changed("running", lambda pod: part(pod, "status").update(status)))
    assert facts.state is EXITED
    assert facts.problem == problem


@pytest.mark.parametrize(
    ("reason", "message", "problem"),
    [
        ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", "NodeLost"),
        ("DeletionByPodGC", "PodGC: node no longer exists", "NodeLost"),
        ("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.", "NodeShutdown"),
        ("TerminationByKubelet", "The node was low on resource: memory.", "Evicted"),
    ],
)
def test_the_problem_names_what_deleted_the_pod(reason: str, message: str, problem: str) -> None:
    def disrupt(pod: JSONObject) -> None:
        condition = part(pod, "status", "conditions", 0)
        assert condition["type"] == "DisruptionTarget"
        condition.update(reason=reason, message=message)

    process = derive_process_facts(changed("evicted-by-api", disrupt))
    assert process.problem is not None
    assert process.problem.reason == problem
    assert process.disruption_announced_at is not None


def test_who_deletes_a_pod_that_had_ended_did_not_end_it() -> None:
    def delete(pod: JSONObject) -> None:
        part(pod, "metadata").update(deletionTimestamp="2026-11-21T13:37:40Z", deletionGracePeriodSeconds=30)

    assert derive_process_facts(changed("exit-3", delete)).problem is None
    assert derive_process_facts(changed("killed", delete)).problem is not None


def test_an_out_of_memory_that_harmed_nothing_is_no_problem() -> None:
    # containerd reports this if any process of the container was killed, also if the container succeeded
    def survive(pod: JSONObject) -> None:
        part(pod, "status", "containerStatuses", 0, "state", "terminated").update(exitCode=0)

    assert derive_process_facts(changed("oom-killed", survive)).problem is None


def test_a_mount_that_succeeded_in_the_end_is_no_problem_any_more() -> None:
    def get_ready(pod: JSONObject) -> None:
        part(pod, "status").update(podIP="10.78.1.4")

    warnings = warned("hostpath-missing")
    assert warnings
    assert derive_process_facts(changed("hostpath-missing", get_ready), warnings).problem is None
