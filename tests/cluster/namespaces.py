"""Namespaces for tests, created several at a time: a kubectl for each takes longer than many short tests."""

import json
import time
import uuid

from cluster.shared import WAIT_SECONDS, Kubectl
from cluster.waiting import PAUSE_SECONDS

AT_ONCE = 8


class Namespaces:
    """Namespaces that no test has had yet."""

    def __init__(self) -> None:
        self._unused: list[str] = []

    def take(self, kubectl: Kubectl) -> str:
        """Return a namespace in which pods can be created."""
        if not self._unused:
            self._unused = [f"test-{uuid.uuid4().hex[:8]}" for _ in range(AT_ONCE)]
            kubectl.apply(
                *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in self._unused)
            )
            _wait_for_accounts(kubectl, set(self._unused))
        return self._unused.pop()

    def close(self, kubectl: Kubectl) -> None:
        """Delete those that no test has taken."""
        if self._unused:
            kubectl("delete", "namespace", *self._unused, "--wait=false")


def _wait_for_accounts(kubectl: Kubectl, namespaces: set[str]) -> None:
    """The API server refuses pods before their namespace has its service account. kubectl waits for one namespace."""
    deadline = time.monotonic() + WAIT_SECONDS
    accounts = ("get", "serviceaccounts", "--all-namespaces", "--field-selector=metadata.name=default", "--output=json")
    while namespaces - {each["metadata"]["namespace"] for each in json.loads(kubectl(*accounts))["items"]}:
        assert time.monotonic() < deadline, "the namespaces have no service accounts"
        time.sleep(PAUSE_SECONDS)
