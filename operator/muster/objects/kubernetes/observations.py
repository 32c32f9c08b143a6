"""Convert times in a pod's status to the operator's clock. Pure.

Kubelets, controllers and the API server use their own clocks, which may differ by a minute. Agents report ages, which
don't depend on clocks. A change in a pod's status happened between the last observation without it and the first
one with it, so its timestamp is limited to this interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.pods import Condition, PodView

_NODE_LOSS_REASONS = ("DeletionByTaintManager", "DeletionByPodGC")
"""Reasons of DisruptionTarget for which the control plane deletes the pod because of its machine."""

_MIN_DELAY_SECONDS = 0.001
"""A change happened after the last observation without it, by at least this much."""


@dataclass(frozen=True)
class Observation:
    """When a state was first observed, and the last observation before that (None: there was none)."""

    at: float
    after: float | None = None

    def bounded(self, stamp: float | None) -> float | None:
        """Limit `stamp`, a time on another clock, to the observed interval; all are Unix seconds."""
        if stamp is None:
            return None
        earliest = stamp if self.after is None else max(stamp, self.after + _MIN_DELAY_SECONDS)
        return min(earliest, self.at)


@dataclass(frozen=True)
class Observations:
    """Observations of a pod's states on the operator's clock; None if a state does not hold.

    `looked_at` is the last observation. `cut_off` is when the cluster lost contact to the pod's machine or evicted the
    pod for it. `deletion_deadline` is when a requested deletion should be complete.
    """

    looked_at: float
    placed: Observation | None = None
    begun: Observation | None = None
    ended: Observation | None = None
    disrupted: Observation | None = None
    leaving: Observation | None = None
    cut_off: Observation | None = None
    deletion_deadline: float | None = None


UNSEEN = Observations(looked_at=math.inf)
"""For a pod that the operator did not watch: its times stay unchanged."""


def look(pod: PodView, before: Observations | None, at: float) -> Observations:
    """Observe the pod at `at` (Unix seconds), after the observations `before`."""
    last = Observations(at) if before is None else before
    after = None if before is None else before.looked_at

    def since(observation: Observation | None, *, holds: bool) -> Observation | None:
        if not holds:
            return None
        return Observation(at, after) if observation is None else observation

    placed, target, state = pod.condition("PodScheduled"), pod.condition("DisruptionTarget"), pod.trainer.state
    cut_off = since(last.cut_off, holds=is_cut_off(pod))
    return Observations(
        looked_at=at,
        placed=since(last.placed, holds=placed is not None and placed.is_true),
        begun=since(last.begun, holds=isinstance(state, Running | Terminated)),
        # During a partition, the container may have ended long before Kubernetes reported it.
        ended=_without_lower_bound(since(last.ended, holds=isinstance(state, Terminated)), last.cut_off),
        disrupted=since(last.disrupted, holds=target is not None and target.is_true),
        leaving=since(last.leaving, holds=pod.deletion_requested_at is not None),
        cut_off=cut_off,
        deletion_deadline=_gone_by(pod, last, at),
    )


def is_cut_off(pod: PodView) -> bool:
    """Whether the cluster reports that the pod's machine is unreachable, or evicted the pod for it."""
    target = pod.condition("DisruptionTarget")
    if target is not None and target.is_true and target.reason in _NODE_LOSS_REASONS:
        return True
    # A kubelet reports both conditions alike. Only a controller sets Ready to false while containers are ready.
    ready, containers = pod.condition("Ready"), pod.condition("ContainersReady")
    if ready is None or containers is None or ready.is_true or not containers.is_true:
        return False
    return ready.reason != "ReadinessGatesNotReady"


def on_operator_clock(pod: PodView, observations: Observations) -> PodView:
    """The pod with all relevant times on the operator's clock."""
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
        return entry if entry.at is None else replace(entry, at=min(entry.at, observations.looked_at))
    return replace(entry, at=observation.bounded(entry.at))


def _without_lower_bound(ended: Observation | None, cut_off: Observation | None) -> Observation | None:
    return ended if ended is None or cut_off is None else Observation(ended.at)


def _gone_by(pod: PodView, last: Observations, at: float) -> float | None:
    if pod.deletion_requested_at is None:
        return None
    # Another deletion request may shorten the grace period but not extend it.
    due = at + (pod.deletion_grace_seconds or 0)
    return due if last.deletion_deadline is None else min(due, last.deletion_deadline)
