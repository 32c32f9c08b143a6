"""muster as its users install it: a release of the chart."""

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.helm import CHART, Helm, Values
from cluster.images import PULL_POLICY
from cluster.shared import Cluster, Kubectl

RELEASE = "muster"
SELECTOR = "app.kubernetes.io/name=muster"
VALUES: Values = {
    # The cluster has the current CRD; test_upgrade.py runs the hook that updates it.
    "crds": {"apply": False},
    "webhook": {"enabled": True},
    "disruptions": {"taints": ["karpenter.sh/disrupted"]},
    "board": {"enabled": True},
}
"""Those of the release that many tests share."""


@dataclass(frozen=True)
class Installation:
    """A release. `system` is its own namespace, `namespace` the one whose jobs it runs."""

    kubectl: Kubectl
    helm: Helm
    system: str
    namespace: str
    values: Values

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of the operator's pods."""
        names = self.kubectl(
            *("get", "pods", f"--namespace={self.system}", f"--selector={SELECTOR}"),
            "--output=jsonpath={.items[*].metadata.name}",
        )
        return tuple(names.split())

    @property
    def leader(self) -> str:
        """The holder of the Lease, by its own name."""
        return str(self._lease["spec"].get("holderIdentity", ""))

    @property
    def leader_term(self) -> int:
        """The number of times that a replica has acquired the Lease."""
        return int(self._lease["spec"].get("leaseTransitions", 0))

    @property
    def _lease(self) -> Any:
        return self.kubectl.read(f"/apis/coordination.k8s.io/v1/namespaces/{self.system}/leases/muster")

    def logs(self, pod: str) -> str:
        """Return a pod's whole log."""
        return self.kubectl("logs", pod, f"--namespace={self.system}")

    def upgrade(self, changes: Values) -> None:
        """Upgrade with some changed values, and wait until all replicas are new."""
        self.helm.install(RELEASE, self.system, {**self.values, **changes})


def image_values(image: str) -> Values:
    """Return the chart's values for an image in the nodes. Nodes that are namespaces of one machine report no disk."""
    repository, _, tag = image.rpartition(":")
    no_disk = {"ephemeral-storage": None}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": PULL_POLICY},
        "resources": {"requests": no_disk, "limits": no_disk},
    }


@contextlib.contextmanager
def installed(
    cluster: Cluster, kubectl: Kubectl, helm: Helm, values: Values, chart: Path = CHART
) -> Iterator[Installation]:
    """Yield a ready release with these values in its own namespace; it is uninstalled at the end."""
    system = f"muster-{uuid.uuid4().hex[:8]}"
    whole = {**image_values(cluster.operator_image()), **values}
    installation = Installation(kubectl, helm, system, "", whole)
    try:
        try:
            helm.install(RELEASE, system, whole, chart)
        except AssertionError as failed:
            # helm only prints that it waited.
            failed.add_note(why_not(kubectl, system))
            raise
        yield installation
    finally:
        remove(kubectl, helm, system)


def why_not(kubectl: Kubectl, system: str) -> str:
    """Return the cluster's information about pods that don't become ready."""
    inside = f"--namespace={system}"
    logs = kubectl("logs", f"--selector={SELECTOR}", inside, "--tail=30", "--prefix", "--ignore-errors")
    return kubectl("get", "pods,events", inside) + logs


def remove(kubectl: Kubectl, helm: Helm, system: str) -> None:
    """Uninstall the release."""
    releases = json.loads(helm("list", f"--namespace={system}", "--all", "--output=json"))
    if releases:
        helm.uninstall(RELEASE, system)
    kubectl("delete", "namespace", system, "--ignore-not-found", "--wait=false")


class Installer:
    """Installs once for many tests, and again if the cluster has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._on = ""
        self._kept: Installation | None = None
        self._open = contextlib.ExitStack()

    def provide(self, kubectl: Kubectl, helm: Helm) -> Installation:
        """Return the stored release."""
        on = kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
        if self._kept is not None and self._on == on:
            return self._kept
        jobs = f"jobs-{uuid.uuid4().hex[:8]}"
        with contextlib.ExitStack() as stack:
            kubectl("create", "namespace", jobs)
            stack.callback(kubectl, "delete", "namespace", jobs, "--wait=false")
            release = stack.enter_context(installed(self._cluster, kubectl, helm, {**VALUES, "namespaces": [jobs]}))
            # The objects of an earlier installation are deleted with it.
            self._open = stack.pop_all()
        self._kept = Installation(kubectl, helm, release.system, jobs, release.values)
        self._on = on
        return self._kept

    def close(self) -> None:
        """Uninstall the stored release."""
        self._open.close()
