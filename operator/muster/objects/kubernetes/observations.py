"""When the operator saw what a pod's fields tell: times of other machines' clocks, brought onto the operator's. Pure.

Kubelets, controllers and the API server each stamp times on their own clock, and clocks of a cluster may be a minute
apart. What agents tell carries ages and needs none of them. What only the cluster tells happened between the
last look that didn't show it and the first that did: a stamp counts within these bounds, and no further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from muster.objects.kubernetes.containers import Running, Terminated
from muster.objects.kubernetes.pods import Condition, PodView

_GIVEN_UP = ("DeletionByTaintManager", "DeletionByPodGC")
"""Of DisruptionTarget: the control plane deletes the pod because of its machine."""

_MOMENT = 0.001
"""What was not there at the last look came after it."""


@dataclass(frozen=True)
class Observation:
    """The first look that showed something, and the last before it that didn't (None: there was none)."""

    at: float
    after: float | None = None

    def bounded(self, stamp: float | None) -> float | None:
        """`stamp` of another clock, as far as it can be true on the operator's; all are Unix seconds."""
        if stamp is None:
            return None
        earliest = stamp if self.after is None else max(stamp, self.after + _MOMENT)
        return min(earliest, self.at)


@dataclass(frozen=True)
class Observations:
    """What was seen of a pod, each on the operator's clock; None: it isn't so (any more).

    `looked_at` is the last look. `cut_off` says that the cluster doesn't hear of the pod's machine any more or has
    given the pod up, `gone_by` when the deletion that was asked for should be done.
    """

    looked_at: float
    placed: Observation | None = None
    begun: Observation | None = None
    ended: Observation | None = None
    disrupted: Observation | None = None
    leaving: Observation | None = None
    cut_off: Observation | None = None
    gone_by: float | None = None


UNSEEN = Observations(looked_at=math.inf)
"""For a pod that the operator did not watch: all its times stay as Kubernetes wrote them."""


def look(pod: PodView, before: Observations | None, at: float) -> Observations:
    """What is seen of the pod at `at` (Unix seconds), after `before`."""
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
        # While the machine was silent its container may have ended long before Kubernetes said so.
        ended=_as_told_late(since(last.ended, holds=isinstance(state, Terminated)), last.cut_off),
        disrupted=since(last.disrupted, holds=target is not None and target.is_true),
        leaving=since(last.leaving, holds=pod.asked_to_go_at is not None),
        cut_off=cut_off,
        gone_by=_gone_by(pod, last, at),
    )


def is_cut_off(pod: PodView) -> bool:
    """Whether the cluster says that the pod's machine doesn't answer, or that it has given up the pod with it."""
    target = pod.condition("DisruptionTarget")
    if target is not None and target.is_true and target.reason in _GIVEN_UP:
        return True
    # The kubelet says of both the same. Only the controllers take readiness from a pod whose containers are ready.
    ready, containers = pod.condition("Ready"), pod.condition("ContainersReady")
    if ready is None or containers is None or ready.is_true or not containers.is_true:
        return False
    return ready.reason != "ReadinessGatesNotReady"


def on_own_clock(pod: PodView, observations: Observations) -> PodView:
    """The pod, with the times that anything follows from brought onto the operator's clock."""
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
    asked = pod.asked_to_go_at
    return replace(
        pod,
        trainer=replace(container, state=state),
        asked_to_go_at=asked if observations.leaving is None else observations.leaving.bounded(asked),
        conditions=tuple(_condition(entry, observations) for entry in pod.conditions),
    )


def _condition(entry: Condition, observations: Observations) -> Condition:
    observation = {"PodScheduled": observations.placed, "DisruptionTarget": observations.disrupted}.get(entry.type)
    if observation is None:
        return entry if entry.at is None else replace(entry, at=min(entry.at, observations.looked_at))
    return replace(entry, at=observation.bounded(entry.at))


def _as_told_late(ended: Observation | None, cut_off: Observation | None) -> Observation | None:
    return ended if ended is None or cut_off is None else Observation(ended.at)


def _gone_by(pod: PodView, last: Observations, at: float) -> float | None:
    if pod.asked_to_go_at is None:
        return None
    # Who deletes it again may leave it less time, never more.
    due = at + (pod.leaving_seconds or 0)
    return due if last.gone_by is None else min(due, last.gone_by)
