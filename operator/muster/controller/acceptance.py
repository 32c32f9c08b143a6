"""Whether this operator, as it is configured, runs a job: the same question as of each job before it starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.config import tenancy
from muster.api.config.tenancy_spec import Tenant
from muster.api.spec.job import Job
from muster.api.spec.node_pool import NamedPool
from muster.api.status.status import Status
from muster.core.attempts import was_started
from muster.render.kubernetes import apply_defaults as on_kubernetes
from muster.render.sagemaker import apply_defaults as on_sagemaker


@dataclass(frozen=True)
class Acceptance:
    """`default_region` is AWS', "" for none."""

    node_pools: Sequence[NamedPool]
    tenancy: Sequence[Tenant]
    default_region: str

    def check(self, job: Job, status: Status) -> None:
        """Raises `InvalidResource` for what the job's namespace may not use, and for pools that don't exist."""
        # What was begun is not given up because less is allowed since.
        if not was_started(status):
            tenancy.check(job, self.tenancy, self.default_region)
        if job.spec.backend == "SageMaker":
            on_sagemaker.apply_defaults(job, self.default_region)
        else:
            on_kubernetes.apply_defaults(job, status, self.node_pools)
