"""Send requests about SageMaker's training jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from muster.clients.aws.connection import Response
from muster.objects.aws import decode
from muster.objects.aws.errors import Invalid
from muster.objects.aws.listing import ListFilter, Page
from muster.objects.aws.training_job import TrainingJobDescription, TrainingJobSummary

PAGE_SIZE = 100
"""The maximum number of jobs in a response of ListTrainingJobs (MaxResults in its model)."""

_NEWEST_FIRST = {"MaxResults": PAGE_SIZE, "SortBy": "CreationTime", "SortOrder": "Descending"}
"""The first fields of a ListTrainingJobs request. Without SortOrder, SageMaker lists the oldest jobs first."""

_NOT_RUNNING_TEXT = "because the training job is in status"
"""The text of StopTrainingJob's ValidationException about a job that has ended or is stopping."""


class TrainingJobs:
    """The training jobs of one account in one region.

    `send_request(operation, request)` sends a request to SageMaker. Methods raise AwsError and don't retry.
    """

    def __init__(self, send_request: Callable[[str, Mapping[str, object]], Awaitable[Response]]) -> None:
        self._send_request = send_request

    async def create(self, request: Mapping[str, object]) -> str:
        """Create a job; return its ARN. Raises AlreadyExists for a used name. After Unavailable, the job may exist."""
        return decode.read_text(await self._send_request("CreateTrainingJob", request), "TrainingJobArn")

    async def describe(self, name: str) -> TrainingJobDescription:
        """Describe a job. Raises NotFound if it doesn't exist."""
        return decode.decode_description(await self._send_request("DescribeTrainingJob", {"TrainingJobName": name}))

    async def stop(self, name: str) -> None:
        """Stop a job. Do nothing if the job has ended or is stopping."""
        try:
            await self._send_request("StopTrainingJob", {"TrainingJobName": name})
        except Invalid as error:
            if _NOT_RUNNING_TEXT not in error.message:
                raise

    async def delete(self, name: str) -> None:
        """Delete an ended job, so that its name is free again. Raises NotFound if it doesn't exist."""
        await self._send_request("DeleteTrainingJob", {"TrainingJobName": name})

    async def list_tags(self, arn: str) -> Mapping[str, str]:
        """Return all tags of a job."""
        result: dict[str, str] = {}
        token = ""
        while True:
            response = await self._send_request(
                "ListTags", {"ResourceArn": arn, **({"NextToken": token} if token else {})}
            )
            result |= decode.decode_tags(response)
            token = decode.read_text(response, "NextToken")
            if not token:
                return result

    async def find_by_name(self, part: str, created_after: datetime) -> tuple[TrainingJobSummary, ...]:
        """Return the jobs whose names contain `part`, newest first."""
        summaries: list[TrainingJobSummary] = []
        request = {**_NEWEST_FIRST, "NameContains": part, "CreationTimeAfter": created_after}
        token = ""
        while True:
            response = await self._send_request(
                "ListTrainingJobs", {**request, **({"NextToken": token} if token else {})}
            )
            summaries += (
                decode.decode_summary(item) for item in decode.read_structures(response, "TrainingJobSummaries")
            )
            token = decode.read_text(response, "NextToken")
            if not token:
                return tuple(summaries)

    async def list_page(self, since: ListFilter, next_token: str = "") -> Page:
        """Return a page of the listing, newest jobs first. Even an empty page may not be the last."""
        request: dict[str, object] = {**_NEWEST_FIRST}
        if since.modified_after is not None:
            request["LastModifiedTimeAfter"] = since.modified_after
        if since.created_after is not None:
            request["CreationTimeAfter"] = since.created_after
        if next_token:
            request["NextToken"] = next_token
        response = await self._send_request("ListTrainingJobs", request)
        return Page(
            tuple(decode.decode_summary(item) for item in decode.read_structures(response, "TrainingJobSummaries")),
            decode.read_text(response, "NextToken"),
            _read_response_time(response),
        )


def _read_response_time(response: Response) -> datetime | None:
    metadata = response.get("ResponseMetadata")
    headers = metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
    date = headers.get("date") if isinstance(headers, Mapping) else None
    if not isinstance(date, str):
        return None
    try:
        sent_at = parsedate_to_datetime(date)
    except ValueError:
        return None
    return sent_at if sent_at.tzinfo is not None else sent_at.replace(tzinfo=UTC)
