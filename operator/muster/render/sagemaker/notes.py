"""What of a job's file SageMaker has no part in, or may not do as the writer thinks: it is sent, and said. Pure."""

from __future__ import annotations

import re

from muster.api.spec.agent import Agent
from muster.api.spec.job import Job, Network, Resources, Spec
from muster.api.spec.sagemaker.block import block_of
from muster.render.sagemaker.request.distribution import groups_are_apart

_ECR = re.compile(r"[0-9]{12}\.dkr[.-]ecr[.-].+")
"""Amazon ECR User Guide, "Private registry": registries of an account, by IPv4, dual-stack and FIPS endpoints."""


def training_notes(job: Job) -> tuple[str, ...]:
    """Lines for people about a job of backend SageMaker; none where there is nothing to say."""
    unused = kubernetes_fields(job.spec)
    block = block_of(job.spec)
    notes = []
    if unused:
        notes.append(f"left alone, for Kubernetes: {', '.join(unused)}; what ranks need of it belongs in env or source")
    image = job.spec.image
    if image is not None and block.image_repository is None and not _ECR.fullmatch(image):
        notes.append(
            f"spec.image {image} isn't in Amazon ECR, and SageMaker takes images from nowhere else: name"
            " sagemaker.framework instead, push it to ECR, or say sagemaker.imageRepository for a registry in your VPC"
        )
    if job.spec.checkpoint is not None and job.spec.checkpoint.s3 is None:
        notes.append("spec.checkpoint names no s3: snapshots go with the instances, and no attempt resumes")
    if groups_are_apart(job.spec):
        notes.append(
            "spec.sagemaker.distribution.instanceGroup: SageMaker's SDK doesn't tell the toolkit of it with this"
            " distribution: each group starts ranks, as a world of its own, unless the program looks where it is"
            " (SM_CURRENT_INSTANCE_GROUP); the status is of the named group's ranks"
        )
    if block.start == "Channels" and job.spec.launcher.mpi is not None:
        notes.append(
            "spec.launcher.mpi: with sagemaker.start: Channels SageMaker's toolkit in the image starts mpirun: no rank"
            " starts without it (pip install sagemaker-training)"
        )
        if len(block.instance_groups) > 1:
            notes.append(
                "spec.sagemaker.instanceGroups: the toolkit starts an mpirun in each of them, and each has a world of"
                " its own; for one world name its group: sagemaker: {start: Toolkit, distribution: {mpi: {},"
                " instanceGroup: ...}}"
            )
    return tuple(notes)


def kubernetes_fields(spec: Spec) -> tuple[str, ...]:
    """The fields that are set and say something to Kubernetes alone, in the design's order."""
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
