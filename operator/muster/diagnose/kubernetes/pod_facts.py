"""Derive the state, the times and the problem of a node's process from its pod. Pure."""

from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.termination_log import read_termination_message
from muster.diagnose.kubernetes.end_problems import find_failed_init_container
from muster.diagnose.kubernetes.problems import find_problem
from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.observations import UNOBSERVED, Observations, on_operator_clock
from muster.objects.kubernetes.pods import FINAL_PHASES, PodView
from muster.objects.kubernetes.warnings import PodWarning
from muster.render.kubernetes.agent_container import rank_grace_seconds

_FIRST_SIGNAL_CODE = 128
_MAX_SIGNAL = 64


def process_facts(
    observed_pod: PodView, warnings: tuple[PodWarning, ...] = (), observations: Observations = UNOBSERVED
) -> ProcessFacts:
    """Derive process facts from a pod, without the agent's reports. Times are converted to the operator's clock."""
    pod = on_operator_clock(observed_pod, observations)
    exit_code, signal = _end(pod)
    state = pod.trainer.state
    scheduled = pod.find_condition("PodScheduled")
    return ProcessFacts(
        state=process_state(pod),
        replacement=pod.replacement,
        exit_code=exit_code,
        signal=signal,
        started_at=state.started_at if isinstance(state, Running | Terminated) else None,
        ended_at=_ended_at(pod, observations),
        problem=find_problem(pod, warnings),
        name=pod.name,
        kube_node=pod.kube_node or None,
        scheduled_at=scheduled.at if scheduled is not None and scheduled.is_true else None,
        is_terminating=pod.deletion_requested_at is not None,
        deletion_requested_at=pod.deletion_requested_at,
        grace_seconds=None if pod.grace_seconds is None else float(rank_grace_seconds(pod.grace_seconds)),
        has_running_sidecars=isinstance(state, Terminated) and _is_anything_running(pod),
        termination_message=read_termination_message(state.message)
        if isinstance(state, Terminated) and state.message
        else None,
        memory_limit=pod.trainer.memory_limit,
        devices=pod.trainer.devices,
        unreachable_since=None if observations.cut_off is None else observations.cut_off.at,
        deletion_deadline=observations.deletion_deadline,
    )


def process_state(pod: PodView) -> ProcessState:
    """Return the state of container `trainer`. The pod's phase also depends on sidecars, which may outlive it."""
    if isinstance(pod.trainer.state, Terminated):
        return ProcessState.EXITED
    # For an evicted, rejected or lost pod, the kubelet may report no container states.
    if pod.phase in FINAL_PHASES or pod.reason == "NodeLost":
        return ProcessState.EXITED
    # The kubelet sets the pod's phase a second later. It doesn't restart the container.
    if find_failed_init_container(pod) is not None:
        return ProcessState.EXITED
    # While the pod is being deleted, the agent still runs.
    if isinstance(pod.trainer.state, Running):
        return ProcessState.RUNNING
    return ProcessState.WAITING


def _is_anything_running(pod: PodView) -> bool:
    return pod.phase not in FINAL_PHASES and any(
        isinstance(container.state, Running) for container in (*pod.inits, *pod.others)
    )


def _end(pod: PodView) -> tuple[int | None, int | None]:
    """Return the agent's exit code, or the signal that ended it."""
    state = pod.trainer.state
    if not isinstance(state, Terminated):
        return None, None
    if state.signal is not None:
        return None, state.signal
    # Like shells, container runtimes encode signals in exit codes.
    signal = state.exit_code - _FIRST_SIGNAL_CODE
    return (None, signal) if 0 < signal <= _MAX_SIGNAL else (state.exit_code, None)


def _ended_at(pod: PodView, observations: Observations) -> float | None:
    state = pod.trainer.state
    if isinstance(state, Terminated) and state.finished_at is not None:
        return state.finished_at
    if process_state(pod) is not ProcessState.EXITED:
        return None
    # Without an end of the container, use the time of the pod's last condition. A refused pod has none, either.
    changes = [entry.at for entry in pod.conditions if entry.at is not None and entry.type != "PodScheduled"]
    return max(changes, default=None if observations.ended is None else observations.ended.at)
