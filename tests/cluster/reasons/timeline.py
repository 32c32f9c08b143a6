"""The API server's events of a namespace with their times: its watches are the common clock of all measurements."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.shared import Kubectl

PATIENCE_SECONDS = 120.0
_WATCHED = {
    "Job": "/apis/muster.dev/v1alpha1/namespaces/{}/distributedtrainingjobs?watch=1",
    "Pod": "/api/v1/namespaces/{}/pods?watch=1",
    "Event": "/api/v1/namespaces/{}/events?watch=1",
}


@dataclass(frozen=True)
class ObservedChange:
    """A change as a watch reported it, `at` in seconds since some moment, `clock` in Unix seconds."""

    at: float
    clock: float
    kind: str
    type: str
    object: Any

    @property
    def name(self) -> str:
        """The object's name; for an event, that of its regarding object."""
        about = self.object["involvedObject"] if self.kind == "Event" else self.object["metadata"]
        return str(about["name"])

    @property
    def status(self) -> Any:
        """The object's status."""
        return self.object.get("status", {})


Predicate = Callable[[ObservedChange], bool]
"""Whether a change matches."""


class Timeline:
    """All changes of jobs, pods and events, in the order of their reports."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._told: list[ObservedChange] = []
        self._more = threading.Condition()
        self._watches = [
            (kind, kubectl.begin("get", "--raw", path.format(namespace))) for kind, path in _WATCHED.items()
        ]
        self._threads = [threading.Thread(target=self._hear, args=watch) for watch in self._watches]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop watching."""
        for _, watch in self._watches:
            watch.kill()
        for thread in self._threads:
            thread.join()
        for _, watch in self._watches:
            watch.communicate()

    def first(self, sight: Predicate, within: float = PATIENCE_SECONDS) -> ObservedChange:
        """Wait for the first matching change."""
        deadline = time.monotonic() + within
        observed_at = 0
        with self._more:
            while True:
                result = next((seen for seen in self._told[observed_at:] if sight(seen)), None)
                if result is not None:
                    return result
                observed_at = len(self._told)
                left = deadline - time.monotonic()
                assert left > 0, f"not seen within {within:.0f} s; jobs said: {self._messages()}"
                self._more.wait(left)

    def all(self, sight: Predicate) -> list[ObservedChange]:
        """Return all matching changes so far."""
        with self._more:
            return [seen for seen in self._told if sight(seen)]

    def _hear(self, kind: str, watch: "subprocess.Popen[str]") -> None:
        assert watch.stdout is not None
        for line in watch.stdout:
            change = json.loads(line)
            with self._more:
                self._told.append(ObservedChange(time.monotonic(), time.time(), kind, change["type"], change["object"]))
                self._more.notify_all()

    def _messages(self) -> Mapping[str, str]:
        return {seen.name: seen.status.get("message", "") for seen in self._told if seen.kind == "Job"}


def condition(job: ObservedChange, kind: str) -> Any:
    """Return a condition of a job or a pod; {} if it has none."""
    return next((entry for entry in job.status.get("conditions", []) if entry["type"] == kind), {})


def says(name: str, reason: str, kind: str = "Stalled") -> Predicate:
    """Whether one of the conditions for users has this reason."""

    def is_it(seen: ObservedChange) -> bool:
        return seen.kind == "Job" and seen.name == name and condition(seen, kind).get("reason") == reason

    return is_it


def pod_of(name: str, what: Callable[[Any], object]) -> Predicate:
    """Return a pod of the job that meets `what`."""

    def is_it(seen: ObservedChange) -> bool:
        labels = seen.object["metadata"].get("labels", {}) if seen.kind == "Pod" else {}
        return labels.get("muster.dev/job") == name and bool(what(seen.object))

    return is_it


def waits(reason: str) -> Callable[[Any], bool]:
    """One of the pod's containers waits for this reason."""
    return lambda pod: any(
        status.get("state", {}).get("waiting", {}).get("reason") == reason for status in statuses(pod)
    )


def ended(pod: Any) -> bool:
    """Whether a container of the pod has ended."""
    return any("terminated" in status.get("state", {}) for status in statuses(pod))


def statuses(pod: Any) -> list[Any]:
    """Return the statuses of all containers of a pod."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def warned(pod_of_job: str, reason: str) -> Predicate:
    """Kubernetes has a warning about a pod of the job."""
    return lambda seen: (
        seen.kind == "Event" and seen.name.startswith(f"{pod_of_job}-") and seen.object["reason"] == reason
    )
