"""Limit the number of namespaces that metrics have as label values."""

from collections.abc import Collection
from dataclasses import dataclass, field

MAX_NAMESPACES = 1_000
"""With more namespaces, a scrape would exceed a megabyte."""

OTHERS = "_others"
"""The label value of all other namespaces. No namespace has this name."""


@dataclass
class NamespaceLabels:
    """The first `MAX_NAMESPACES` namespaces have their own label values."""

    _labelled_namespaces: set[str] = field(default_factory=set)

    def get_label(self, namespace: str) -> str:
        """Return the namespace's label value."""
        if namespace not in self._labelled_namespaces:
            if len(self._labelled_namespaces) >= MAX_NAMESPACES:
                return OTHERS
            self._labelled_namespaces.add(namespace)
        return namespace

    def remove_unused(self, current: Collection[str]) -> frozenset[str]:
        """If the maximum is reached, remove and return the namespaces that have no jobs."""
        if len(self._labelled_namespaces) < MAX_NAMESPACES:
            return frozenset()
        removed_namespaces = frozenset(self._labelled_namespaces.difference(current))
        self._labelled_namespaces -= removed_namespaces
        return removed_namespaces
