"""The namespaces that metrics have as label values, in bounded number."""

from collections.abc import Collection
from dataclasses import dataclass, field

MAX_NAMESPACES = 1_000
"""With more namespaces, a scrape would exceed a megabyte."""

OTHERS = "_others"
"""The label value of all further namespaces. No namespace has this name."""


@dataclass
class NamespaceLabels:
    """Gives the first `MAX_NAMESPACES` namespaces a label value of their own."""

    _known: set[str] = field(default_factory=set)

    def label(self, namespace: str) -> str:
        """Return the namespace's label value."""
        if namespace not in self._known:
            if len(self._known) >= MAX_NAMESPACES:
                return OTHERS
            self._known.add(namespace)
        return namespace

    def make_room(self, current: Collection[str]) -> frozenset[str]:
        """Once all places are taken, forget the namespaces that have no jobs; return them."""
        if len(self._known) < MAX_NAMESPACES:
            return frozenset()
        removed = frozenset(self._known.difference(current))
        self._known -= removed
        return removed
