"""Keep warnings about pods that the informer has not reported yet. Bounded: users may create any number of Events."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from muster.objects.kubernetes.warnings import PodWarning

MAX_PODS = 1_000
"""The maximum number of pods of a namespace with warnings; the newest are kept."""

MAX_PODS_TOTAL = 4_000
"""The maximum for all namespaces together; each pod needs at most 17 KiB."""

MAX_WARNINGS = 4
"""The maximum number of warnings of a pod: one mount fails at a time."""

_Warnings = tuple[PodWarning, ...]


@dataclass
class PendingWarnings:
    """Past the limit, the namespace with the most pods loses its oldest."""

    _namespaces: dict[str, OrderedDict[str, _Warnings]] = field(default_factory=dict)
    _pods: int = 0

    def __len__(self) -> int:
        return self._pods

    def add(self, warned: PodWarning) -> None:
        """Keep a warning until the informer reports its pod."""
        pods = self._namespaces.setdefault(warned.namespace, OrderedDict())
        self._pods += warned.pod_uid not in pods
        pods[warned.pod_uid] = with_warning(pods.pop(warned.pod_uid, ()), warned)
        if len(pods) > MAX_PODS:
            self._forget_oldest(warned.namespace)
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


def with_warning(warnings: _Warnings, warned: PodWarning) -> _Warnings:
    """Append a warning; the newest is last."""
    return (*(warning for warning in warnings if warning != warned), warned)[-MAX_WARNINGS:]
