"""Derive the state, the times and the problem of a node's process from its pod. Pure."""

from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.termination_log import read_termination_message
from muster.diagnose.kubernetes.end_problems import find_failed_init_container
from muster.diagnose.kubernetes.problems import find_problem
from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.observations import UNOBSERVED, Observations, convert_times
from muster.objects.kubernetes.pods import FINAL_PHASES, PodView
from muster.objects.kubernetes.warnings import PodWarning
from muster.render.kubernetes.agent_container import get_rank_grace_seconds

_FIRST_SIGNAL_CODE = 128
_MAX_SIGNAL = 64


def derive_process_facts(
    observed_pod: PodView, warnings: tuple[PodWarning, ...] = (), observations: Observations = UNOBSERVED
) -> ProcessFacts:
    """Derive process facts from a pod, without the agent's reports. Times are converted to the operator's clock."""
    pod = convert_times(observed_pod, observations)
    exit_code, signal = _read_exit(pod)
    state = pod.trainer.state
    scheduled, target = pod.find_condition("PodScheduled"), pod.find_condition("DisruptionTarget")
    return ProcessFacts(
        state=derive_process_state(pod),
        replacement=pod.replacement,
        exit_code=exit_code,
        signal=signal,
        started_at=state.started_at if isinstance(state, Running | Terminated) else None,
        ended_at=_find_end_time(pod, observations),
        problem=find_problem(pod, warnings),
        name=pod.name,
        kube_node=pod.kube_node or None,
        scheduled_at=scheduled.at if scheduled is not None and scheduled.is_true else None,
        is_terminating=pod.deletion_requested_at is not None,
        deletion_requested_at=pod.deletion_requested_at,
        disruption_announced_at=None if target is None or not target.is_true else target.at,
        grace_seconds=None if pod.grace_seconds is None else float(get_rank_grace_seconds(pod.grace_seconds)),
        has_running_sidecars=isinstance(state, Terminated) and _has_running_container(pod),
        termination_message=read_termination_message(state.message)
        if isinstance(state, Terminated) and state.message
        else None,
        memory_limit=pod.trainer.memory_limit,
        devices=pod.trainer.devices,
        unreachable_since=None if observations.disconnection is None else observations.disconnection.at,
        deletion_deadline=observations.deletion_deadline,
    )


def derive_process_state(pod: PodView) -> ProcessState:
    """Return the state of container `trainer`. The pod's phase also depends on sidecars, which may outlive it."""
    if isinstance(pod.trainer.state, Terminated):
        return ProcessState.EXITED
    # For an evicted, rejected or lost pod, the kubelet may report no container states.
    if pod.phase in FINAL_PHASES or pod.reason == "NodeLost":
        return ProcessState.EXITED
    # The kubelet doesn't restart a failed init container, and sets the pod's phase a second later.
    if find_failed_init_container(pod) is not None:
        return ProcessState.EXITED
    # The agent runs, even if the pod is being deleted.
    if isinstance(pod.trainer.state, Running):
        return ProcessState.RUNNING
    return ProcessState.WAITING


def _has_running_container(pod: PodView) -> bool:
    return pod.phase not in FINAL_PHASES and any(
        isinstance(container.state, Running) for container in (*pod.init_containers, *pod.other_containers)
    )


def _read_exit(pod: PodView) -> tuple[int | None, int | None]:
    """Return the agent's exit code, or the signal that ended it."""
    state = pod.trainer.state
    if not isinstance(state, Terminated):
        return None, None
    if state.signal is not None:
        return None, state.signal
    # Like shells, container runtimes encode signals in exit codes.
    signal = state.exit_code - _FIRST_SIGNAL_CODE
    return (None, signal) if 0 < signal <= _MAX_SIGNAL else (state.exit_code, None)


def _find_end_time(pod: PodView, observations: Observations) -> float | None:
    state = pod.trainer.state
    if isinstance(state, Terminated) and state.finished_at is not None:
        return state.finished_at
    if derive_process_state(pod) is not ProcessState.EXITED:
        return None
    # If the container has no end time, use the time of the pod's last condition. A rejected pod may have no conditions.
    changes = [entry.at for entry in pod.conditions if entry.at is not None and entry.type != "PodScheduled"]
    return max(changes, default=None if observations.end is None else observations.end.at)
