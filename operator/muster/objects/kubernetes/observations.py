"""Convert times in a pod's status to the operator's clock. Pure.

Kubelets, controllers and the API server use their own clocks, which may differ by a minute. A change happened between
the operator's last observation without it and the first observation with it. So its timestamp is limited to this
interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.pods import FINAL_PHASES, Condition, PodView

_NODE_LOSS_REASONS = ("DeletionByTaintManager", "DeletionByPodGC")
"""The reasons of DisruptionTarget if the control plane deletes a pod because its machine is lost."""

_MIN_DELAY_SECONDS = 0.001
"""A change happened at least this long after the last observation without it."""


@dataclass(frozen=True)
class Observation:
    """The time of the first observation of a state (`at`), and of the last observation before it, if any (`after`)."""

    at: float
    after: float | None = None

    def bounded(self, stamp: float | None) -> float | None:
        """Limit `stamp`, a time of another clock, to the observed interval. All times are Unix seconds."""
        if stamp is None:
            return None
        earliest = stamp if self.after is None else max(stamp, self.after + _MIN_DELAY_SECONDS)
        return min(earliest, self.at)


@dataclass(frozen=True)
class Observations:
    """The observations of a pod's states by the operator's clock; None for a state that the pod doesn't have.

    `observed_at` is the time of the last observation. `cut_off`: the cluster lost contact to the pod's machine, or
    evicted the pod because of that. `deletion_deadline` is the time at which a requested deletion should be complete.
    """

    observed_at: float
    placed: Observation | None = None
    begun: Observation | None = None
    ended: Observation | None = None
    disrupted: Observation | None = None
    leaving: Observation | None = None
    cut_off: Observation | None = None
    deletion_deadline: float | None = None


UNOBSERVED = Observations(observed_at=math.inf)
"""The observations of a pod that the operator did not watch. Its times stay unchanged."""


def observe_pod(pod: PodView, before: Observations | None, at: float) -> Observations:
    """Observe the pod at `at` (Unix seconds), after the observations `before`."""
    last = Observations(at) if before is None else before
    after = None if before is None else before.observed_at

    def since(observation: Observation | None, *, holds: bool) -> Observation | None:
        if not holds:
            return None
        return Observation(at, after) if observation is None else observation

    placed, target, state = (
        pod.find_condition("PodScheduled"),
        pod.find_condition("DisruptionTarget"),
        pod.trainer.state,
    )
    cut_off = since(last.cut_off, holds=is_cut_off(pod))
    return Observations(
        observed_at=at,
        placed=since(last.placed, holds=placed is not None and placed.is_true),
        begun=since(last.begun, holds=isinstance(state, Running | Terminated)),
        # If its machine was unreachable, the container may have ended long before Kubernetes reported it.
        ended=_without_lower_bound(since(last.ended, holds=_has_ended(pod)), last.cut_off),
        disrupted=since(last.disrupted, holds=target is not None and target.is_true),
        leaving=since(last.leaving, holds=pod.deletion_requested_at is not None),
        cut_off=cut_off,
        deletion_deadline=_deletion_deadline(pod, last, at),
    )


def is_cut_off(pod: PodView) -> bool:
    """Whether the pod's machine is unreachable according to the cluster."""
    target = pod.find_condition("DisruptionTarget")
    if target is not None and target.is_true and target.reason in _NODE_LOSS_REASONS:
        return True
    # Only the node controller sets Ready to false while ContainersReady is true. A kubelet sets both.
    ready, containers = pod.find_condition("Ready"), pod.find_condition("ContainersReady")
    if ready is None or containers is None or ready.is_true or not containers.is_true:
        return False
    return ready.reason != "ReadinessGatesNotReady"


def on_operator_clock(pod: PodView, observations: Observations) -> PodView:
    """Return the pod with its times converted to the operator's clock."""
    container = pod.trainer
    state = container.state
    if isinstance(state, Running) and observations.begun is not None:
        state = replace(state, started_at=observations.begun.bounded(state.started_at))
    if isinstance(state, Terminated) and observations.begun is not None and observations.ended is not None:
        started_at, finished_at = (
            observations.begun.bounded(state.started_at),
            observations.ended.bounded(state.finished_at),
        )
        state = replace(state, started_at=started_at, finished_at=finished_at)
    deletion_requested_at = pod.deletion_requested_at
    return replace(
        pod,
        trainer=replace(container, state=state),
        deletion_requested_at=deletion_requested_at
        if observations.leaving is None
        else observations.leaving.bounded(deletion_requested_at),
        conditions=tuple(_condition(entry, observations) for entry in pod.conditions),
    )


def _condition(entry: Condition, observations: Observations) -> Condition:
    observation = {"PodScheduled": observations.placed, "DisruptionTarget": observations.disrupted}.get(entry.type)
    if observation is None:
        return entry if entry.at is None else replace(entry, at=min(entry.at, observations.observed_at))
    return replace(entry, at=observation.bounded(entry.at))


def _has_ended(pod: PodView) -> bool:
    # A pod that its kubelet refused has no container states.
    return isinstance(pod.trainer.state, Terminated) or pod.phase in FINAL_PHASES


def _without_lower_bound(ended: Observation | None, cut_off: Observation | None) -> Observation | None:
    return ended if ended is None or cut_off is None else Observation(ended.at)


def _deletion_deadline(pod: PodView, last: Observations, at: float) -> float | None:
    if pod.deletion_requested_at is None:
        return None
    # Another deletion request can only shorten the grace period.
    due = at + (pod.deletion_grace_seconds or 0)
    return due if last.deletion_deadline is None else min(due, last.deletion_deadline)
