"""Warnings about pods that are not known yet: whoever may write Events in a namespace may write any number of them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from muster.objects.kubernetes.warnings import Warned

MAX_PODS = 1_000
"""Pods of a namespace, newest first, whose warnings are kept."""

MAX_PODS_IN_ALL = 4_000
"""The same of all namespaces together; they take 17 KiB each at most."""

MAX_WARNINGS = 4
"""Warnings kept of one pod: a mount fails for one volume at a time."""

_Warnings = tuple[Warned, ...]


@dataclass
class EarlyWarnings:
    """When there are too many, the namespace that has most of them loses its oldest."""

    _namespaces: dict[str, OrderedDict[str, _Warnings]] = field(default_factory=dict)
    _pods: int = 0

    def __len__(self) -> int:
        return self._pods

    def add(self, warned: Warned) -> None:
        """Keep a warning until its pod is known."""
        own = self._namespaces.setdefault(warned.namespace, OrderedDict())
        self._pods += warned.pod_uid not in own
        own[warned.pod_uid] = with_warning(own.pop(warned.pod_uid, ()), warned)
        if len(own) > MAX_PODS:
            self._forget_oldest(warned.namespace)
        elif self._pods > MAX_PODS_IN_ALL:
            self._forget_oldest(max(self._namespaces, key=lambda namespace: len(self._namespaces[namespace])))

    def pop(self, namespace: str, pod_uid: str) -> _Warnings:
        """A pod's warnings, which are not kept here any longer."""
        own = self._namespaces.get(namespace)
        warnings = None if own is None else own.pop(pod_uid, None)
        if warnings is None:
            return ()
        self._pods -= 1
        if not own:
            del self._namespaces[namespace]
        return warnings

    def _forget_oldest(self, namespace: str) -> None:
        self.pop(namespace, next(iter(self._namespaces[namespace])))


def with_warning(warnings: _Warnings, warned: Warned) -> _Warnings:
    """A pod's warnings with one more, the newest last."""
    return (*(one for one in warnings if one != warned), warned)[-MAX_WARNINGS:]
