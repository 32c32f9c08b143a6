"""Warnings about fields of a job that SageMaker ignores, or may not handle as expected. Pure."""

from __future__ import annotations

import re

from muster.api.spec.agent import Agent
from muster.api.spec.job import Job, Network, Resources, Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.render.sagemaker.request.distribution import has_separate_worlds

_ECR = re.compile(r"[0-9]{12}\.dkr[.-]ecr[.-].+")
"""The URLs of private registries (Amazon ECR User Guide, "Private registry")."""


def make_training_warnings(job: Job) -> tuple[str, ...]:
    """Return warnings for users about a job of backend SageMaker."""
    unused = list_kubernetes_fields(job.spec)
    block = get_sagemaker_block(job.spec)
    warnings = []
    if unused:
        warnings.append(f"ignored on SageMaker: {', '.join(unused)}; set what the ranks need in env or source")
    image = job.spec.image
    if image is not None and block.image_repository is None and not _ECR.fullmatch(image):
        warnings.append(
            f"spec.image {image} isn't in Amazon ECR, the only registry that SageMaker supports: set"
            " sagemaker.framework instead, push it to ECR, or set sagemaker.imageRepository for a registry in your VPC"
        )
    if job.spec.checkpoint is not None and job.spec.checkpoint.s3 is None:
        warnings.append("spec.checkpoint has no s3: checkpoints are lost with the instances, and no attempt can resume")
    if has_separate_worlds(job.spec):
        warnings.append(
            "spec.sagemaker.distribution.instanceGroup: SageMaker's toolkit doesn't get this field with this"
            " distribution: each group starts ranks in its own world, unless the program checks its group"
            " (SM_CURRENT_INSTANCE_GROUP); the status shows the ranks of this group"
        )
    if block.start == "Channels" and job.spec.launcher.mpi is not None:
        warnings.append(
            "spec.launcher.mpi: with sagemaker.start: Channels SageMaker's toolkit in the image starts mpirun: no rank"
            " starts without it (pip install sagemaker-training)"
        )
        if len(block.instance_groups) > 1:
            warnings.append(
                "spec.sagemaker.instanceGroups: the toolkit starts mpirun in each group, and each group has its"
                " own world; for a single world, choose a group: sagemaker: {start: Toolkit, distribution: {mpi: {},"
                " instanceGroup: ...}}"
            )
    return tuple(warnings)


def list_kubernetes_fields(spec: Spec) -> tuple[str, ...]:
    """Return the fields of the job that apply only to Kubernetes, in the order of the API."""
    fields = {
        "resources": spec.resources != Resources(),
        "nodePool": spec.node_pool is not None,
        "warmStart": "warm_start" in spec.model_fields_set,
        "network": spec.network != Network(),
        "cleanPodPolicy": spec.clean_pod_policy != "Running",
        "startupTimeoutSeconds": "startup_timeout_seconds" in spec.model_fields_set,
        "queue": spec.queue is not None,
        "agent": spec.agent != Agent(),
        "template": bool(spec.template),
        "nodeOverrides": bool(spec.node_overrides),
    }
    return tuple(f"spec.{name}" for name, is_set in fields.items() if is_set)
