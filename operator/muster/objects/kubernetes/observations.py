"""Convert times in a pod's status to the operator's clock. Pure.

Kubelets, controllers and the API server use their own clocks, which may differ by a minute. A change happened
between the operator's last observation without it and the first observation with it. So limit its timestamp to this
interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.pods import FINAL_PHASES, Condition, PodView

_NODE_LOSS_REASONS = ("DeletionByTaintManager", "DeletionByPodGC")
"""The reasons of DisruptionTarget if the control plane deletes a pod because its Kubernetes node is lost."""

_MIN_DELAY_SECONDS = 0.001
"""A change happened at least this long after the last observation without it."""


@dataclass(frozen=True)
class Observation:
    """The time `at` of the first observation of a change.

    `previous_at` is the time of the observation before it, if any.
    """

    at: float
    previous_at: float | None = None

    def limit_time(self, timestamp: float | None) -> float | None:
        """Limit `timestamp`, a time of another clock, to the observed interval. All times are Unix seconds."""
        if timestamp is None:
            return None
        earliest = timestamp if self.previous_at is None else max(timestamp, self.previous_at + _MIN_DELAY_SECONDS)
        return min(earliest, self.at)


@dataclass(frozen=True)
class Observations:
    """When the operator observed each change of a pod, on its own clock; None for a change that has not happened.

    `observed_at` is the time of the last observation. `disconnection` is when the cluster lost contact to the pod's
    Kubernetes node, or evicted the pod because of that. `deletion_deadline` is the time at which a requested deletion
    should be complete.
    """

    observed_at: float
    scheduling: Observation | None = None
    start: Observation | None = None
    end: Observation | None = None
    disruption: Observation | None = None
    deletion: Observation | None = None
    disconnection: Observation | None = None
    deletion_deadline: float | None = None


UNOBSERVED = Observations(observed_at=math.inf)
"""The observations of a pod that the operator did not watch. `convert_times` keeps the times of such a pod."""


def observe_pod(pod: PodView, before: Observations | None, at: float) -> Observations:
    """Observe the pod at `at` (Unix seconds), after the observations `before`."""
    last = Observations(at) if before is None else before
    previous_at = None if before is None else before.observed_at

    def update(observation: Observation | None, *, holds: bool) -> Observation | None:
        if not holds:
            return None
        return Observation(at, previous_at) if observation is None else observation

    scheduled, target, state = (
        pod.find_condition("PodScheduled"),
        pod.find_condition("DisruptionTarget"),
        pod.trainer.state,
    )
    disconnection = update(last.disconnection, holds=is_unreachable(pod))
    return Observations(
        observed_at=at,
        scheduling=update(last.scheduling, holds=scheduled is not None and scheduled.is_true),
        start=update(last.start, holds=isinstance(state, Running | Terminated)),
        # If its Kubernetes node was unreachable, the container may have ended long before Kubernetes reported it.
        end=_drop_lower_bound(update(last.end, holds=_has_ended(pod)), last.disconnection),
        disruption=update(last.disruption, holds=target is not None and target.is_true),
        deletion=update(last.deletion, holds=pod.deletion_requested_at is not None),
        disconnection=disconnection,
        deletion_deadline=_compute_deletion_deadline(pod, last, at),
    )


def is_unreachable(pod: PodView) -> bool:
    """Whether the pod's Kubernetes node is unreachable according to the cluster."""
    target = pod.find_condition("DisruptionTarget")
    if target is not None and target.is_true and target.reason in _NODE_LOSS_REASONS:
        return True
    # Only the node controller sets Ready to false while ContainersReady is true. A kubelet sets both.
    ready, containers = pod.find_condition("Ready"), pod.find_condition("ContainersReady")
    if ready is None or containers is None or ready.is_true or not containers.is_true:
        return False
    return ready.reason != "ReadinessGatesNotReady"


def convert_times(pod: PodView, observations: Observations) -> PodView:
    """Return the pod with its times converted to the operator's clock."""
    container = pod.trainer
    state = container.state
    if isinstance(state, Running) and observations.start is not None:
        state = replace(state, started_at=observations.start.limit_time(state.started_at))
    if isinstance(state, Terminated) and observations.start is not None and observations.end is not None:
        started_at, finished_at = (
            observations.start.limit_time(state.started_at),
            observations.end.limit_time(state.finished_at),
        )
        state = replace(state, started_at=started_at, finished_at=finished_at)
    deletion_requested_at = pod.deletion_requested_at
    return replace(
        pod,
        trainer=replace(container, state=state),
        deletion_requested_at=deletion_requested_at
        if observations.deletion is None
        else observations.deletion.limit_time(deletion_requested_at),
        conditions=tuple(_convert_condition(entry, observations) for entry in pod.conditions),
    )


def _convert_condition(entry: Condition, observations: Observations) -> Condition:
    observation = {"PodScheduled": observations.scheduling, "DisruptionTarget": observations.disruption}.get(entry.type)
    if observation is None:
        return entry if entry.at is None else replace(entry, at=min(entry.at, observations.observed_at))
    return replace(entry, at=observation.limit_time(entry.at))


def _has_ended(pod: PodView) -> bool:
    # A pod that its kubelet refused has no container states.
    return isinstance(pod.trainer.state, Terminated) or pod.phase in FINAL_PHASES


def _drop_lower_bound(end: Observation | None, disconnection: Observation | None) -> Observation | None:
    return end if end is None or disconnection is None else Observation(end.at)


def _compute_deletion_deadline(pod: PodView, last: Observations, at: float) -> float | None:
    if pod.deletion_requested_at is None:
        return None
    # Another deletion request can only shorten the grace period.
    due = at + (pod.deletion_grace_seconds or 0)
    return due if last.deletion_deadline is None else min(due, last.deletion_deadline)
