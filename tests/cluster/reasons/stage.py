"""Jobs with failures, with their observation as a user sees it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cluster.images import PULL_POLICY
from cluster.operator.cluster_jobs import OK, Jobs, manifest
from cluster.operator.operator_process import OperatorProcess
from cluster.reasons.timeline import (
    PATIENCE_SECONDS,
    ObservedChange,
    Predicate,
    Timeline,
    condition,
    pod_of,
    says,
    statuses,
)
from cluster.say import say
from cluster.shared import Kubectl, Manifest
from cluster.waiting import PAUSE_SECONDS

NOTHING: Manifest = {}

A_SHARE: Manifest = {"requests": {"cpu": "50m"}}
"""Small requests, because pods without requests wait for all others on the machine, which muster can't influence."""

SOON_SECONDS = 10.0
"""The limit from the cluster's first report to the status; it takes less than 1 s on an idle machine."""


@dataclass(frozen=True)
class Stage:
    """A namespace, its operator, and the timeline of its objects."""

    kubectl: Kubectl
    namespace: str
    timeline: Timeline
    operator: OperatorProcess
    applied: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> Jobs:
        """The jobs of the namespace."""
        return Jobs(self.kubectl, self.namespace)

    def apply(self, name: str, script: str = OK, **spec: object) -> None:
        """Apply a job, with one rank by default."""
        self.applied.append(name)
        resource = manifest(name, script, **{"nodes": 1, "procsPerNode": 1, "resources": A_SHARE, **spec})
        self.kubectl.apply_job(self.namespace, resource)

    def wait_for_reason(self, name: str, sign: Predicate, reason: str, kind: str = "Stalled") -> ObservedChange:
        """Return the first status with the reason. It came soon after the cluster's first sign of it."""
        knew = self.timeline.first(sign)
        told = self.timeline.first(says(name, reason, kind))
        late = told.at - knew.at
        say(f"{name}: {reason} after {late:.2f} s: {told.status['message']}")
        assert late <= SOON_SECONDS
        return told

    def failed(self, name: str, sign: Predicate | None, reason: str) -> ObservedChange:
        """Return the status with which the job failed for this reason. Its first part came soon.

        `sign` None: soon after the rank's own end, as its agent saw it.
        """
        over = self.timeline.first(says(name, reason, "Failed"))
        message = condition(over, "Failed")["message"]
        first = self.timeline.first(lambda seen: seen.kind == "Job" and seen.name == name and _tells(seen, message))
        if sign is None:
            late = first.clock - datetime.fromisoformat(first.status["ranks"]["details"][0]["at"]).timestamp()
        else:
            late = first.at - self.timeline.first(sign).at
        say(f"{name}: {reason} after {late:.2f} s, over {over.at - first.at:.2f} s later: {message}")
        assert late <= SOON_SECONDS
        return over

    def completes(self, name: str) -> None:
        """Wait until the job is Complete."""
        self.timeline.first(says(name, "AllRanksSucceeded", "Complete"))

    def runs(self, name: str) -> ObservedChange:
        """Wait until the job's ranks run."""
        return self.timeline.first(
            lambda seen: seen.kind == "Job" and seen.name == name and seen.status.get("phase") == "Running"
        )

    def until(self, what: Callable[[], object]) -> None:
        """Wait for a state that no watch reports."""
        deadline = self.now() + PATIENCE_SECONDS
        while not what():
            assert self.now() < deadline
            time.sleep(PAUSE_SECONDS)

    @staticmethod
    def now() -> float:
        """Return the time on the timeline's clock."""
        return time.monotonic()

    def pod(self, name: str, node: int = 0) -> Any:
        """Return the latest state of the pod of a job's node."""
        seen = self.timeline.all(pod_of(name, lambda pod: _is_node(pod, node)))
        return seen[-1].object

    def started_pod(self, name: str, node: int = 0) -> Any:
        """Return the same, once the kubelet reports its container, which is later than muster's report of its ranks."""
        self.timeline.first(pod_of(name, lambda pod: _is_node(pod, node) and _has_started(pod)))
        return self.pod(name, node)

    def warned_once(self, name: str, reason: str, *, maybe_before: str | None = None) -> None:
        """The job has one warning, with this reason, except for one that `maybe_before` names."""
        self.timeline.first(lambda seen: _warns(seen, name) and seen.object["reason"] == reason)
        value = self.timeline.all(lambda seen: _warns(seen, name))
        reasons = [seen.object["reason"] for seen in value]
        assert reasons in ([reason], [maybe_before, reason]), [seen.object["message"] for seen in value]


def _is_node(pod: Any, node: int) -> bool:
    return bool(pod["metadata"]["labels"].get("muster.dev/node") == str(node))


def _has_started(pod: Any) -> bool:
    return any(each["name"] == "trainer" and each.get("containerID") for each in statuses(pod))


def _warns(seen: ObservedChange, name: str) -> bool:
    event = seen.object
    is_new = seen.kind == "Event" and seen.type == "ADDED" and event["type"] == "Warning"
    return is_new and event["involvedObject"]["kind"] == "DistributedTrainingJob" and seen.name == name


def _tells(seen: ObservedChange, message: str) -> bool:
    # The message about the other ranks may change while they are stopped.
    return str(seen.status.get("message", "")).split(";")[0] == message.split(";", maxsplit=1)[0]


def template(container: Manifest = NOTHING, **pod: object) -> Manifest:
    """Return a job's template with further fields in `trainer` and in the pod."""
    others = pod.pop("containers", [])
    assert isinstance(others, list)
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, **container}
    return {"spec": {"terminationGracePeriodSeconds": 6, "containers": [trainer, *others], **pod}}
