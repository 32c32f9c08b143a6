"""Find the pods whose Kubernetes nodes have taints that announce their end, such as the end of a spot instance.

Only one event loop may use it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.clients.kubernetes.client import Change
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.problems import NODE_SHUTDOWN
from muster.core.problem import Problem
from muster.objects.kubernetes.pods import PodView


@dataclass
class KubeNodeTaints:
    """The Kubernetes nodes with one of the taints `keys`, and when the operator first observed each taint.

    It calls `on_change` with the name of a Kubernetes node whose taints change. `clock` returns Unix seconds.
    """

    keys: tuple[str, ...]
    on_change: Callable[[str], None]
    clock: Callable[[], float]
    _observed_at: dict[str, dict[str, float]] = field(default_factory=dict)

    def handle_change(self, change: Change) -> None:
        """Handle a Kubernetes node's change."""
        name = read_string(read_mapping(change.object.get("metadata")).get("name"))
        taints = read_mappings(read_mapping(change.object.get("spec")).get("taints"))
        taint_keys = () if change.type == "DELETED" else tuple(read_string(taint.get("key")) for taint in taints)
        before = self._observed_at.pop(name, {})
        after = {key: before.get(key, self.clock()) for key in self.keys if key in taint_keys}
        if after:
            self._observed_at[name] = after
        if after != before:
            self.on_change(name)

    def add_announcement(self, pod: PodView, process: ProcessFacts) -> ProcessFacts:
        """Add the announced end of the pod's Kubernetes node to the process, unless the pod tolerates the taint."""
        if process.state not in (ProcessState.WAITING, ProcessState.RUNNING) or process.is_terminating:
            return process
        # The pod's own condition is more precise.
        if process.disruption_announced_at is not None or "" in pod.tolerated_taints:
            return process
        for key, at in self._observed_at.get(pod.kube_node, {}).items():
            if key not in pod.tolerated_taints:
                problem = Problem(NODE_SHUTDOWN, f"{pod.kube_node} has the taint {key}, which announces its end")
                return replace(process, problem=problem, disruption_announced_at=at)
        return process


def make_without_taints() -> KubeNodeTaints:
    """Create an object for operators that read no Kubernetes nodes."""
    return KubeNodeTaints((), lambda _: None, time.time)
