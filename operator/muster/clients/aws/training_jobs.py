"""SageMaker's training jobs, as muster asks for them."""

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
"""As many as ListTrainingJobs hands out at once (MaxResults in its model)."""

_OVER = "because the training job is in status"
"""StopTrainingJob's words for a job that has ended or is stopping (a ValidationException)."""


class TrainingJobs:
    """Those of one place. `ask` takes an operation and its request. Methods raise AwsError and repeat nothing."""

    def __init__(self, ask: Callable[[str, Mapping[str, object]], Awaitable[Answer]]) -> None:
        self._ask = ask

    async def create(self, request: Mapping[str, object]) -> str:
        """The ARN of the new job. AlreadyExists: a job of this name is there. Unavailable: it may be there now."""
        return decode.text(await self._ask("CreateTrainingJob", request), "TrainingJobArn")

    async def describe(self, name: str) -> Description:
        """All that there is to know of one. NotFound: there is none."""
        return decode.description(await self._ask("DescribeTrainingJob", {"TrainingJobName": name}))

    async def stop(self, name: str) -> None:
        """See to it that one ends: `Stopping` first. One that has ended, or is stopping, stays as it is."""
        try:
            await self._ask("StopTrainingJob", {"TrainingJobName": name})
        except Invalid as refused:
            if _OVER not in refused.message:
                raise

    async def delete(self, name: str) -> None:
        """Have SageMaker forget one that has ended. Its name is free again. NotFound: there is none."""
        await self._ask("DeleteTrainingJob", {"TrainingJobName": name})

    async def tags(self, arn: str) -> Mapping[str, str]:
        """All tags of one."""
        result: dict[str, str] = {}
        more = ""
        while True:
            answer = await self._ask("ListTags", {"ResourceArn": arn, **({"NextToken": more} if more else {})})
            result |= decode.tags(answer)
            more = decode.text(answer, "NextToken")
            if not more:
                return result

    async def named(self, part: str, created_after: datetime) -> tuple[Summary, ...]:
        """Those whose names contain `part`, newest first."""
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
        """A part of the listing, newest jobs first; a page may be empty although more follow."""
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
