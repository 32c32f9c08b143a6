"""What ended a pod, or takes it away, where its agent can't tell. Pure."""

import re

from muster.core.facts import Problem
from muster.core.failure.ends import NODE_LOST
from muster.core.failure.problems import CONTAINER_KILLED, OOM_KILLED, POD_DELETED, PREEMPTED
from muster.core.failure.rank_output import telling_line
from muster.core.failure.termination_log import read_termination_message
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.containers import Container, Terminated, Waiting
from muster.objects.kubernetes.pods import Condition, PodView
from muster.objects.kubernetes.warnings import Warned
from muster.render.kubernetes import storage

EVICTED = "Evicted"
POD_DEADLINE_EXCEEDED = "PodDeadlineExceeded"
REFUSED_BY_KUBELET = "RefusedByKubelet"
NODE_SHUTDOWN = "NodeShutdown"
INIT_CONTAINER_FAILED = "InitContainerFailed"
SIDECAR_FAILED = "SidecarFailed"

KILLED_EXIT_CODE = 137
"""What a container runtime makes of SIGKILL."""

_REFUSALS = re.compile(
    r"OutOf\w+|UnexpectedAdmissionError|NodeAffinity|NodePorts|NodeName|Taint\w*|PodOS\w+|.*NotSupported"
)
_REASON = re.compile(r"^([A-Z][A-Za-z0-9]{1,62}): ([^\n]+)\Z", re.MULTILINE)
_SHUTDOWN = "node shutdown"


def evicted(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The kubelet needed back what the pod used."""
    if pod.reason != "Evicted":
        return None
    return Problem(EVICTED, f"{pod.machine} evicted it: {quote(pod.message)}")


def deadline_exceeded(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The pod's own deadline, which its owner set in the template."""
    if pod.reason != "DeadlineExceeded":
        return None
    words = "spec.template.spec.activeDeadlineSeconds is over; muster's own is spec.activeDeadlineSeconds"
    return Problem(POD_DEADLINE_EXCEEDED, words)


def refused_by_kubelet(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The machine it was placed on did not take it."""
    is_rejected = pod.message.startswith("Pod was rejected: ") or _REFUSALS.fullmatch(pod.reason) is not None
    if pod.phase != "Failed" or not is_rejected:
        return None
    why = quote(pod.message.removeprefix("Pod was rejected: "))
    return Problem(REFUSED_BY_KUBELET, f"{pod.machine} refused it ({quote(pod.reason, 60)}): {why}")


def machine_lost(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The machine went down or is unreachable."""
    if pod.phase == "Failed" and _SHUTDOWN in pod.message.lower():
        return Problem(NODE_SHUTDOWN, f"{pod.machine} shuts down")
    state = pod.trainer.state
    lost_track = isinstance(state, Terminated) and state.reason == "ContainerStatusUnknown"
    # Of a pod that is deleted the kubelet says so of every container that had not begun.
    lost_track = lost_track and pod.asked_to_go_at is None
    if pod.reason == "NodeLost" or lost_track:
        return Problem(NODE_LOST, f"{pod.machine} lost the pod: it was cut off, restarted or removed")
    return None


def disrupted(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """A part of the cluster took the pod away, and says why."""
    target = pod.condition("DisruptionTarget")
    if target is None or not target.is_true or _ended_before(pod, target.at):
        return None
    return _disruption(pod, target)


def _disruption(pod: PodView, target: Condition) -> Problem:
    match target.reason:
        case "PreemptionByScheduler":
            return Problem(PREEMPTED, f"a pod of a higher priority took its place on {pod.machine}")
        case "DeletionByTaintManager":
            words = (
                f"{pod.machine} got a taint that the pod doesn't tolerate: it is unreachable or taken out of service"
            )
            return Problem(NODE_LOST, words)
        case "DeletionByPodGC":
            return Problem(NODE_LOST, f"{pod.machine} was removed from the cluster")
        case "EvictionByEvictionAPI":
            return Problem(EVICTED, f"it was evicted, as by `kubectl drain {pod.machine}`")
        case "TerminationByKubelet" if _SHUTDOWN in target.message.lower():
            return Problem(NODE_SHUTDOWN, f"{pod.machine} shuts down")
        case _:
            return Problem(EVICTED, f"{pod.machine} gave it up: {quote(target.message)}")


def out_of_memory(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The container used more memory than it may."""
    state = pod.trainer.state
    if not isinstance(state, Terminated) or state.reason != "OOMKilled":
        return None
    limit = pod.trainer.memory_limit
    if limit:
        words = (
            f"container {pod.trainer.name} ran out of memory; its limit is {limit}: raise spec.resources.limits.memory"
        )
    else:
        words = f"container {pod.trainer.name} ran out of memory: {pod.machine} has no more to give"
    return Problem(OOM_KILLED, words)


def init_failed(pod: PodView, _: tuple[Warned, ...] = ()) -> Problem | None:
    """What had to be done before `trainer` begins, and wasn't."""
    for container in pod.inits:
        state = container.state
        if isinstance(state, Terminated) and state.exit_code != 0 and not container.is_sidecar:
            return _not_brought(container, state) or Problem(
                INIT_CONTAINER_FAILED, f"init container {container.name} {_how(pod, container, state)}"
            )
    return None


def _not_brought(container: Container, state: Terminated) -> Problem | None:
    """What the container says that brings the job's files: a reason and a sentence, in its last line."""
    match = _REASON.search(state.message.rstrip()) if container.name == storage.DOWNLOAD else None
    return None if match is None else Problem(match.group(1), quote(match.group(2)))


def deleted(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The pod was deleted. Its backend knows whether muster did it."""
    if pod.asked_to_go_at is None or _ended_before(pod, pod.asked_to_go_at):
        return None
    return Problem(POD_DELETED, f"pod {pod.name} was deleted, and not by muster")


def killed(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The whole container was killed, the agent with it: no process in it could do that to the agent alone."""
    state = pod.trainer.state
    if not isinstance(state, Terminated) or state.exit_code != KILLED_EXIT_CODE:
        return None
    # A killed agent leaves no termination message: this one ended by itself, with the code of a rank that was.
    if read_termination_message(state.message) is not None:
        return None
    limit = f" (its limit is {pod.trainer.memory_limit})" if pod.trainer.memory_limit else ""
    words = f"container {pod.trainer.name} was killed as a whole with SIGKILL: it ran out of memory{limit}"
    return Problem(CONTAINER_KILLED, f"{words}, or it was killed on {pod.machine}")


def sidecar_failed(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """A container beside `trainer` failed while that still needs it."""
    if isinstance(pod.trainer.state, Terminated) or pod.asked_to_go_at is not None:
        return None
    for container in (*(one for one in pod.inits if one.is_sidecar), *pod.others):
        end = _end(container)
        if end is not None and end.exit_code != 0:
            return Problem(SIDECAR_FAILED, f"container {container.name} {_how(pod, container, end)}")
    return None


def _end(container: Container) -> Terminated | None:
    """How it ended, when it isn't running again."""
    if isinstance(container.state, Terminated):
        return container.state
    return container.last if isinstance(container.state, Waiting) else None


def _how(pod: PodView, container: Container, state: Terminated) -> str:
    if state.reason == "OOMKilled":
        limit = f"; its limit is {container.memory_limit}" if container.memory_limit else ""
        return f"ran out of memory{limit}: raise its memory limit in spec.template"
    last = telling_line(tuple(state.message.splitlines()[-8:]))
    # Without terminationMessagePolicy FallbackToLogsOnError its last line is in its log alone.
    said = quote(last) or f"`kubectl logs {pod.name} -c {container.name}` may tell why"
    return f"failed with exit code {state.exit_code}: {said}"


def _ended_before(pod: PodView, at: float | None) -> bool:
    """Whether `trainer` had already ended by itself when something came over the pod at `at`."""
    state = pod.trainer.state
    ended = state.finished_at if isinstance(state, Terminated) else None
    return ended is not None and at is not None and ended < at
