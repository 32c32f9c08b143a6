"""Warnings about fields of a job that SageMaker ignores, or may not handle as expected. Pure."""

from __future__ import annotations

import re

from muster.api.spec.agent import Agent
from muster.api.spec.job import Job, Network, Resources, Spec
from muster.api.spec.sagemaker.block import block_of
from muster.render.sagemaker.request.distribution import groups_are_apart

_ECR = re.compile(r"[0-9]{12}\.dkr[.-]ecr[.-].+")
"""Private registries (Amazon ECR User Guide, "Private registry"), with IPv4, dual-stack and FIPS endpoints."""


def training_notes(job: Job) -> tuple[str, ...]:
    """Warnings for users about a job of backend SageMaker."""
    unused = kubernetes_fields(job.spec)
    block = block_of(job.spec)
    warnings = []
    if unused:
        warnings.append(
            f"left alone, for Kubernetes: {', '.join(unused)}; what ranks need of it belongs in env or source"
        )
    image = job.spec.image
    if image is not None and block.image_repository is None and not _ECR.fullmatch(image):
        warnings.append(
            f"spec.image {image} isn't in Amazon ECR, and SageMaker takes images from nowhere else: name"
            " sagemaker.framework instead, push it to ECR, or say sagemaker.imageRepository for a registry in your VPC"
        )
    if job.spec.checkpoint is not None and job.spec.checkpoint.s3 is None:
        warnings.append("spec.checkpoint names no s3: snapshots go with the instances, and no attempt resumes")
    if groups_are_apart(job.spec):
        warnings.append(
            "spec.sagemaker.distribution.instanceGroup: SageMaker's SDK doesn't tell the toolkit of it with this"
            " distribution: each group starts ranks, as a world of its own, unless the program looks where it is"
            " (SM_CURRENT_INSTANCE_GROUP); the status is of the named group's ranks"
        )
    if block.start == "Channels" and job.spec.launcher.mpi is not None:
        warnings.append(
            "spec.launcher.mpi: with sagemaker.start: Channels SageMaker's toolkit in the image starts mpirun: no rank"
            " starts without it (pip install sagemaker-training)"
        )
        if len(block.instance_groups) > 1:
            warnings.append(
                "spec.sagemaker.instanceGroups: the toolkit starts an mpirun in each of them, and each has a world of"
                " its own; for one world name its group: sagemaker: {start: Toolkit, distribution: {mpi: {},"
                " instanceGroup: ...}}"
            )
    return tuple(warnings)


def kubernetes_fields(spec: Spec) -> tuple[str, ...]:
    """The set fields that apply only to Kubernetes, in the order of the API."""
    fields = {
        "resources": spec.resources != Resources(),
        "nodePool": spec.node_pool is not None,
        "network": spec.network != Network(),
        "cleanPodPolicy": spec.clean_pod_policy != "Running",
        "startupTimeoutSeconds": "startup_timeout_seconds" in spec.model_fields_set,
        "queue": spec.queue is not None,
        "agent": spec.agent != Agent(),
        "template": bool(spec.template),
        "nodeOverrides": bool(spec.node_overrides),
    }
    return tuple(f"spec.{name}" for name, is_set in fields.items() if is_set)
