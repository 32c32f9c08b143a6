"""MPI jobs on the cluster: the image of their pods, and the differences between implementations and users."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.images import PULL_POLICY
from cluster.mpi.pod_installs import PodInstall
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.site import Site


@dataclass(frozen=True)
class Rights:
    """The permissions of pods and their containers: both parts of a template's securityContext."""

    pod: Mapping[str, object] = field(default_factory=dict)
    container: Mapping[str, object] = field(default_factory=dict)


ROOT = Rights()
USER = Rights({"runAsUser": 1000, "runAsNonRoot": True})
"""A user without a name and a home in the image."""

RESTRICTED = Rights(
    {**USER.pod, "seccompProfile": {"type": "RuntimeDefault"}},
    {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
)
"""The same user under the restricted Pod Security Standard, without write access to the image's /tmp."""


@dataclass(frozen=True)
class MpiSite:
    """A namespace with an operator, and an image with Open MPI 4 in the nodes."""

    site: Site
    image: str

    @property
    def jobs(self) -> Jobs:
        """The jobs of the namespace."""
        return self.site.jobs

    def apply(self, name: str, mpi: PodInstall, command: tuple[str, ...], rights: Rights = ROOT) -> None:
        """Apply a job of 2 nodes x 2 ranks."""
        trainer = {
            "name": "trainer",
            "imagePullPolicy": PULL_POLICY,
            "volumeMounts": list(mpi.mounts),
            "securityContext": rights.container,
        }
        pod = {"securityContext": rights.pod, "volumes": list(mpi.volumes), "containers": [trainer]}
        self.jobs.apply(
            name,
            launcher={"mpi": {}},
            image=self.image,
            command=command,
            env=list(mpi.env),
            resources={"requests": {"cpu": "50m"}},
            template={"spec": {"terminationGracePeriodSeconds": 6, **pod}},
        )

    def ended(self, name: str, condition: str) -> Any:
        """Return the job's status once it has the condition `Complete` or `Failed`."""
        self.jobs.wait(name, f"condition={condition}")
        return self.jobs.status(name)

    def why(self, name: str) -> str:
        """Return the logs of the job's nodes and of the operator."""
        pods = self.jobs.children(name, "pods")
        return "\n".join([*(self.jobs.run("logs", pod) for pod in sorted(pods)), self.site.said])
