"""A pod as the process of a node: where it stands, since when, and what problems it. Pure."""

from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.termination_log import read_termination_message
from muster.diagnose.kubernetes.end_problems import init_failed
from muster.diagnose.kubernetes.problems import find_problem
from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.observations import UNSEEN, Observations, on_own_clock
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import Warned
from muster.render.kubernetes.agent_container import rank_grace_seconds

_OVER = ("Failed", "Succeeded")

_FIRST_SIGNAL_CODE = 128
_MAX_SIGNAL = 64


def process_facts(
    told: PodView, warnings: tuple[Warned, ...] = (), observations: Observations = UNSEEN
) -> ProcessFacts:
    """What the pod tells of its node without asking the agent, its times as the operator's clock has them."""
    pod = on_own_clock(told, observations)
    exit_code, signal = _end(pod)
    state = pod.trainer.state
    placed = pod.condition("PodScheduled")
    return ProcessFacts(
        state=process_state(pod),
        replacement=pod.replacement,
        exit_code=exit_code,
        signal=signal,
        started_at=state.started_at if isinstance(state, Running | Terminated) else None,
        ended_at=_ended_at(pod),
        problem=find_problem(pod, warnings),
        name=pod.name,
        machine=pod.machine or None,
        scheduled_at=placed.at if placed is not None and placed.is_true else None,
        is_leaving=pod.asked_to_go_at is not None,
        grace_seconds=None if pod.grace_seconds is None else float(rank_grace_seconds(pod.grace_seconds)),
        lingers=isinstance(state, Terminated) and _is_anything_running(pod),
        termination_message=read_termination_message(state.message)
        if isinstance(state, Terminated) and state.message
        else None,
        memory_limit=pod.trainer.memory_limit,
        cut_off_at=None if observations.cut_off is None else observations.cut_off.at,
        gone_by=observations.gone_by,
    )


def process_state(pod: PodView) -> ProcessState:
    """Judged by container `trainer`: what runs beside it may outlive it, and the pod's phase with that."""
    if isinstance(pod.trainer.state, Terminated):
        return ProcessState.EXITED
    # Evicted, refused, given up with its machine: the kubelet may not have said more.
    if pod.phase in _OVER or pod.reason == "NodeLost":
        return ProcessState.EXITED
    # Its phase follows a second later; pods of jobs are not begun again.
    if init_failed(pod) is not None:
        return ProcessState.EXITED
    # Deleted or not: until it ends its agent is at work.
    if isinstance(pod.trainer.state, Running):
        return ProcessState.RUNNING
    return ProcessState.WAITING


def _is_anything_running(pod: PodView) -> bool:
    return pod.phase not in _OVER and any(isinstance(one.state, Running) for one in (*pod.inits, *pod.others))


def _end(pod: PodView) -> tuple[int | None, int | None]:
    """Exit code or signal of the agent."""
    state = pod.trainer.state
    if not isinstance(state, Terminated):
        return None, None
    if state.signal is not None:
        return None, state.signal
    # Runtimes tell of a signal as shells do.
    signal = state.exit_code - _FIRST_SIGNAL_CODE
    return (None, signal) if 0 < signal <= _MAX_SIGNAL else (state.exit_code, None)


def _ended_at(pod: PodView) -> float | None:
    state = pod.trainer.state
    if isinstance(state, Terminated) and state.finished_at is not None:
        return state.finished_at
    if process_state(pod) is not ProcessState.EXITED:
        return None
    # Of a pod that ends without its container's end being known the conditions tell when.
    changes = [entry.at for entry in pod.conditions if entry.at is not None and entry.type != "PodScheduled"]
    return max(changes, default=None)
