"""Find the running training jobs of a job by their names, without its status."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muster.api.spec.job import Metadata
from muster.clients.aws.client import Aws
from muster.core.training_job.name import build_name_prefix, parse_attempt
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import NotFound
from muster.objects.aws.training_job import FINAL_STATUSES
from muster.render.sagemaker.request.identity import has_job_tags


@dataclass(frozen=True)
class UnrecordedTrainingJob:
    """A running training job that the job's status doesn't record."""

    name: str
    attempt: int
    aws_access: AwsAccess


@dataclass(frozen=True)
class TrainingJobSearch:
    """Runs one search at a time in each region: searches and the poller share SageMaker's rate limit of List."""

    aws: Aws
    _locks: dict[AwsAccess, asyncio.Lock] = field(default_factory=dict)

    async def find_running(
        self, metadata: Metadata, aws_accesses: Sequence[AwsAccess], since: datetime
    ) -> UnrecordedTrainingJob | None:
        """Return the job's latest running training job that was created after `since`, if any. Raises AwsError."""
        stem = build_name_prefix(metadata)
        for aws_access in aws_accesses:
            jobs = self.aws.get_training_jobs(aws_access)
            async with self._locks.setdefault(aws_access, asyncio.Lock()):
                listed = await jobs.find_by_name(stem, since)
            attempts = {
                attempt: summary.name
                for summary in listed
                if summary.status not in FINAL_STATUSES and (attempt := parse_attempt(summary.name, stem)) is not None
            }
            for attempt, name in sorted(attempts.items(), reverse=True):
                try:
                    tags = await jobs.list_tags((await jobs.describe(name)).arn)
                except NotFound:
                    continue
                if has_job_tags(tags, metadata.uid, attempt):
                    return UnrecordedTrainingJob(name, attempt, aws_access)
        return None
