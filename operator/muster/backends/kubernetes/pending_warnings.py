"""Keep warnings about pods that the informer has not reported yet.

Their number is limited, because users may create any number of Events.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from muster.objects.kubernetes.warnings import PodWarning

MAX_PODS = 1_000
"""The maximum number of pods of a namespace with warnings; the newest are kept."""

MAX_PODS_TOTAL = 4_000
"""The maximum for all namespaces together; each pod needs at most 17 KiB."""

MAX_WARNINGS = 4
"""The maximum number of warnings of a pod. A few are enough: the kubelet reports one failed mount at a time."""

_Warnings = tuple[PodWarning, ...]


@dataclass
class PendingWarnings:
    """The warnings by namespace and pod. Above the limit, drop the oldest pod's of the namespace with the most pods."""

    _namespaces: dict[str, OrderedDict[str, _Warnings]] = field(default_factory=dict)
    _pods: int = 0

    def __len__(self) -> int:
        return self._pods

    def add(self, warning: PodWarning) -> None:
        """Keep a warning until the informer reports its pod."""
        pods = self._namespaces.setdefault(warning.namespace, OrderedDict())
        self._pods += warning.pod_uid not in pods
        pods[warning.pod_uid] = append_warning(pods.pop(warning.pod_uid, ()), warning)
        if len(pods) > MAX_PODS:
            self._forget_oldest(warning.namespace)
        elif self._pods > MAX_PODS_TOTAL:
            self._forget_oldest(max(self._namespaces, key=lambda namespace: len(self._namespaces[namespace])))

    def pop(self, namespace: str, pod_uid: str) -> _Warnings:
        """Remove and return a pod's warnings."""
        pods = self._namespaces.get(namespace)
        warnings = None if pods is None else pods.pop(pod_uid, None)
        if warnings is None:
            return ()
        self._pods -= 1
        if not pods:
            del self._namespaces[namespace]
        return warnings

    def _forget_oldest(self, namespace: str) -> None:
        self.pop(namespace, next(iter(self._namespaces[namespace])))


def append_warning(warnings: _Warnings, warning: PodWarning) -> _Warnings:
    """Append a warning; the newest is last."""
    return (*(earlier for earlier in warnings if earlier != warning), warning)[-MAX_WARNINGS:]
