"""Requests about SageMaker's training jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from muster.clients.aws.connection import Answer
from muster.objects.aws import decode
from muster.objects.aws.errors import Invalid
from muster.objects.aws.listing import Page, Since
from muster.objects.aws.training_job import Description, Summary

PAGE = 100
"""The most jobs in one response of ListTrainingJobs (MaxResults in its model)."""

_NOT_RUNNING = "because the training job is in status"
"""StopTrainingJob's message for a job that has ended or is stopping (a ValidationException)."""


class TrainingJobs:
    """The training jobs of one place.

    `ask` sends an operation with its request. Methods raise AwsError and don't retry.
    """

    def __init__(self, ask: Callable[[str, Mapping[str, object]], Awaitable[Answer]]) -> None:
        self._ask = ask

    async def create(self, request: Mapping[str, object]) -> str:
        """Create a job; return its ARN. AlreadyExists: the name is used. Unavailable: the job may exist now."""
        return decode.text(await self._ask("CreateTrainingJob", request), "TrainingJobArn")

    async def describe(self, name: str) -> Description:
        """Describe a job. NotFound: it does not exist."""
        return decode.description(await self._ask("DescribeTrainingJob", {"TrainingJobName": name}))

    async def stop(self, name: str) -> None:
        """Stop a job: its status becomes `Stopping` first. A job that has ended, or is stopping, is left alone."""
        try:
            await self._ask("StopTrainingJob", {"TrainingJobName": name})
        except Invalid as refused:
            if _NOT_RUNNING not in refused.message:
                raise

    async def delete(self, name: str) -> None:
        """Delete an ended job, which frees its name. NotFound: it does not exist."""
        await self._ask("DeleteTrainingJob", {"TrainingJobName": name})

    async def tags(self, arn: str) -> Mapping[str, str]:
        """All tags of a job."""
        result: dict[str, str] = {}
        more = ""
        while True:
            answer = await self._ask("ListTags", {"ResourceArn": arn, **({"NextToken": more} if more else {})})
            result |= decode.tags(answer)
            more = decode.text(answer, "NextToken")
            if not more:
                return result

    async def named(self, part: str, created_after: datetime) -> tuple[Summary, ...]:
        """The jobs whose names contain `part`, newest first."""
        summaries: list[Summary] = []
        request = {"MaxResults": PAGE, "NameContains": part, "CreationTimeAfter": created_after}
        more = ""
        while True:
            answer = await self._ask("ListTrainingJobs", {**request, **({"NextToken": more} if more else {})})
            summaries += (decode.summary(item) for item in decode.objects(answer, "TrainingJobSummaries"))
            more = decode.text(answer, "NextToken")
            if not more:
                return tuple(summaries)

    async def page(self, since: Since, more: str = "") -> Page:
        """A page of the listing, newest jobs first; a page may be empty although more follow."""
        request: dict[str, object] = {"MaxResults": PAGE, "SortBy": "CreationTime", "SortOrder": "Descending"}
        if since.modified is not None:
            request["LastModifiedTimeAfter"] = since.modified
        if since.created is not None:
            request["CreationTimeAfter"] = since.created
        if more:
            request["NextToken"] = more
        answer = await self._ask("ListTrainingJobs", request)
        return Page(
            tuple(decode.summary(item) for item in decode.objects(answer, "TrainingJobSummaries")),
            decode.text(answer, "NextToken"),
            _answered_at(answer),
        )


def _answered_at(answer: Answer) -> datetime | None:
    about = answer.get("ResponseMetadata")
    headers = about.get("HTTPHeaders") if isinstance(about, Mapping) else None
    date = headers.get("date") if isinstance(headers, Mapping) else None
    if not isinstance(date, str):
        return None
    try:
        stat = parsedate_to_datetime(date)
    except ValueError:
        return None
    return stat if stat.tzinfo is not None else stat.replace(tzinfo=UTC)
