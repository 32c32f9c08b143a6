"""Which training jobs of a job run, whatever its status tells: SageMaker is asked for all that bear its names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muster.api.spec.job import Metadata
from muster.clients.aws.client import Aws
from muster.core.training_job.name import attempt_of, name_stem
from muster.objects.aws.errors import NotFound
from muster.objects.aws.place import Place
from muster.objects.aws.training_job import ENDED
from muster.render.sagemaker.request.identity import is_of


@dataclass(frozen=True)
class UnrecordedTrainingJob:
    """A training job of the job's that is not over."""

    name: str
    attempt: int
    place: Place


@dataclass(frozen=True)
class Census:
    """One is held at a time in each place: the sweep that looks at all jobs there asks as often as their listing."""

    aws: Aws
    _turns: dict[Place, asyncio.Lock] = field(default_factory=dict)

    async def running(
        self, metadata: Metadata, places: Sequence[Place], since: datetime
    ) -> UnrecordedTrainingJob | None:
        """The latest that is the job's and not over, of those created after `since`; None: none is. Raises AwsError."""
        stem = name_stem(metadata)
        for place in places:
            jobs = self.aws.training_jobs(place)
            async with self._turns.setdefault(place, asyncio.Lock()):
                listed = await jobs.named(stem, since)
            attempts = {
                attempt: one.name
                for one in listed
                if one.status not in ENDED and (attempt := attempt_of(one.name, stem)) is not None
            }
            for attempt, name in sorted(attempts.items(), reverse=True):
                try:
                    tags = await jobs.tags((await jobs.describe(name)).arn)
                except NotFound:
                    continue
                if is_of(tags, metadata.uid, attempt):
                    return UnrecordedTrainingJob(name, attempt, place)
        return None
