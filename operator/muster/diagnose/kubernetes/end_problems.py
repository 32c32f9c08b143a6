"""Find out why a pod ended or is being deleted, in case its agent can't report it. Pure."""

import re

from muster.core.failure.ends import NODE_LOST
from muster.core.failure.problems import (
    CONTAINER_KILLED,
    EVICTED,
    NODE_SHUTDOWN,
    OOM_KILLED,
    POD_DELETED,
    PREEMPTED,
    REFUSED_BY_KUBELET,
)
from muster.core.failure.rank_output import find_error_line
from muster.core.failure.termination_log import read_termination_message
from muster.core.problem import Problem
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.containers import Container, Terminated, Waiting
from muster.objects.kubernetes.pods import Condition, PodView
from muster.objects.kubernetes.warnings import PodWarning
from muster.render.kubernetes import storage

POD_DEADLINE_EXCEEDED = "PodDeadlineExceeded"
INIT_CONTAINER_FAILED = "InitContainerFailed"
SIDECAR_FAILED = "SidecarFailed"

KILLED_EXIT_CODE = 137
"""The exit code of container runtimes for SIGKILL."""

_REFUSALS = re.compile(
    r"OutOf\w+|UnexpectedAdmissionError|NodeAffinity|NodePorts|NodeName|Taint\w*|PodOS\w+|.*NotSupported"
)
_REASON = re.compile(r"^([A-Z][A-Za-z0-9]{1,62}): ([^\n]+)\Z", re.MULTILINE)
_SHUTDOWN = "node shutdown"
_KUEUE_REASONS = re.compile(r"WorkloadDeleted|WorkloadEvicted\w*|NoMatchingWorkload|NotAdmitted")
_KUEUE_PREEMPTION = "WorkloadEvictedDueToPreempted"
"""The reasons of a pod's condition in Kueue 0.17 (pkg/controller/jobframework/reconciler.go)."""


def find_eviction(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a pod that the kubelet evicted to reclaim resources."""
    if pod.reason != "Evicted":
        return None
    return Problem(EVICTED, f"{pod.kube_node} evicted it: {quote(pod.message)}")


def find_exceeded_deadline(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a pod that exceeded the deadline in spec.template."""
    if pod.reason != "DeadlineExceeded":
        return None
    message = "spec.template.spec.activeDeadlineSeconds is over; muster's own is spec.activeDeadlineSeconds"
    return Problem(POD_DEADLINE_EXCEEDED, message)


def find_kubelet_refusal(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a pod that the kubelet rejected."""
    is_rejected = pod.message.startswith("Pod was rejected: ") or _REFUSALS.fullmatch(pod.reason) is not None
    if pod.phase != "Failed" or not is_rejected:
        return None
    why = quote(pod.message.removeprefix("Pod was rejected: "))
    return Problem(REFUSED_BY_KUBELET, f"{pod.kube_node} refused it ({quote(pod.reason, 60)}): {why}")


def find_lost_kube_node(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a pod whose Kubernetes node shut down or is unreachable."""
    if pod.phase == "Failed" and _SHUTDOWN in pod.message.lower():
        return Problem(NODE_SHUTDOWN, f"{pod.kube_node} shuts down")
    state = pod.trainer.state
    is_unknown = isinstance(state, Terminated) and state.reason == "ContainerStatusUnknown"
    # For a deleted pod, the kubelet reports this state for all containers that had not started.
    is_unknown = is_unknown and pod.deletion_requested_at is None
    if pod.reason == "NodeLost" or is_unknown:
        return Problem(NODE_LOST, f"{pod.kube_node} lost the pod: it was cut off, restarted or removed")
    return None


def find_disruption(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return why the cluster removed the pod, according to its condition DisruptionTarget."""
    target = pod.find_condition("DisruptionTarget")
    if target is None or not target.is_true or _has_ended_before(pod, target.at):
        return None
    return _build_disruption_problem(pod, target)


def _build_disruption_problem(pod: PodView, target: Condition) -> Problem:
    match target.reason:
        case "PreemptionByScheduler":
            return Problem(PREEMPTED, f"a pod of a higher priority took its place on {pod.kube_node}")
        case "DeletionByTaintManager":
            message = (
                f"{pod.kube_node} got a taint that the pod doesn't tolerate: it is unreachable or taken out of service"
            )
            return Problem(NODE_LOST, message)
        case "DeletionByPodGC":
            return Problem(NODE_LOST, f"{pod.kube_node} was removed from the cluster")
        case "EvictionByEvictionAPI":
            return Problem(EVICTED, f"it was evicted, as by `kubectl drain {pod.kube_node}`")
        case "TerminationByKubelet" if _SHUTDOWN in target.message.lower():
            return Problem(NODE_SHUTDOWN, f"{pod.kube_node} shuts down")
        case _:
            return Problem(EVICTED, f"{pod.kube_node} ended it: {quote(target.message)}")


def find_queue_eviction(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return why Kueue ended the pod's group, according to the condition that it sets before it deletes the pod."""
    target = pod.find_condition("TerminationTarget")
    if target is None or not target.is_true or _KUEUE_REASONS.fullmatch(target.reason) is None:
        return None
    if _has_ended_before(pod, target.at):
        return None
    reason = PREEMPTED if target.reason == _KUEUE_PREEMPTION else EVICTED
    return Problem(reason, f"Kueue ended the job's pods: {quote(target.message)}")


def find_out_of_memory(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a container that exceeded its memory limit, or whose Kubernetes node ran out of memory."""
    state = pod.trainer.state
    if not isinstance(state, Terminated) or state.reason != "OOMKilled":
        return None
    limit = pod.trainer.memory_limit
    if limit:
        message = (
            f"container {pod.trainer.name} ran out of memory; its limit is {limit}: raise spec.resources.limits.memory"
        )
    else:
        message = f"container {pod.trainer.name} ran out of memory: {pod.kube_node} has no free memory"
    return Problem(OOM_KILLED, message)


def find_failed_init_container(pod: PodView, _: tuple[PodWarning, ...] = ()) -> Problem | None:
    """Return the problem of the first failed init container."""
    for container in pod.init_containers:
        state = container.state
        if isinstance(state, Terminated) and state.exit_code != 0 and not container.is_sidecar:
            return _find_download_problem(container, state) or Problem(
                INIT_CONTAINER_FAILED, f"init container {container.name} {_describe_end(pod, container, state)}"
            )
    return None


def _find_download_problem(container: Container, state: Terminated) -> Problem | None:
    """Return the problem in the last output line of the download container."""
    match = _REASON.search(state.message.rstrip()) if container.name == storage.DOWNLOAD else None
    return None if match is None else Problem(match.group(1), quote(match.group(2)))


def find_deletion(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a deleted pod. The backend knows whether muster deleted it."""
    if pod.deletion_requested_at is None or _has_ended_before(pod, pod.deletion_requested_at):
        return None
    return Problem(POD_DELETED, f"pod {pod.name} was deleted, and not by muster")


def find_kill(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a container that was killed with its agent.

    A process in the container can't kill the agent.
    """
    state = pod.trainer.state
    if not isinstance(state, Terminated) or state.exit_code != KILLED_EXIT_CODE:
        return None
    # An agent with a termination message was not killed: it exited with the exit code of a killed rank.
    if read_termination_message(state.message) is not None:
        return None
    limit = f" (its limit is {pod.trainer.memory_limit})" if pod.trainer.memory_limit else ""
    message = f"container {pod.trainer.name} was killed as a whole with SIGKILL: it ran out of memory{limit}"
    return Problem(CONTAINER_KILLED, f"{message}, or it was killed on {pod.kube_node}")


def find_failed_sidecar(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of a sidecar that failed before `trainer` ended."""
    if isinstance(pod.trainer.state, Terminated) or pod.deletion_requested_at is not None:
        return None
    for container in (*(container for container in pod.init_containers if container.is_sidecar), *pod.other_containers):
        end = _find_end(container)
        if end is not None and end.exit_code != 0:
            return Problem(SIDECAR_FAILED, f"container {container.name} {_describe_end(pod, container, end)}")
    return None


def _find_end(container: Container) -> Terminated | None:
    """Return the container's end, unless the container has restarted."""
    if isinstance(container.state, Terminated):
        return container.state
    return container.last_termination if isinstance(container.state, Waiting) else None


def _describe_end(pod: PodView, container: Container, state: Terminated) -> str:
    if state.reason == "OOMKilled":
        limit = f"; its limit is {container.memory_limit}" if container.memory_limit else ""
        return f"ran out of memory{limit}: raise its memory limit in spec.template"
    last = find_error_line(tuple(state.message.splitlines()[-8:]))
    # Without terminationMessagePolicy FallbackToLogsOnError, the error is only in the container's log.
    error = quote(last) or f"`kubectl logs {pod.name} -c {container.name}` may tell why"
    return f"failed with exit code {state.exit_code}: {error}"


def _has_ended_before(pod: PodView, at: float | None) -> bool:
    """Whether `trainer` had ended before `at`."""
    state = pod.trainer.state
    finished_at = state.finished_at if isinstance(state, Terminated) else None
    return finished_at is not None and at is not None and finished_at < at
