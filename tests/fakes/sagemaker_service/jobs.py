"""The training jobs of one account in one region. No I/O; every call gets the time as an argument."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fakes.sagemaker_service import rules, shapes
from fakes.sagemaker_service.refusal import (
    Refusal,
    make_not_found_refusal,
    make_quota_refusal,
    make_validation_refusal,
    name_taken,
)
from fakes.sagemaker_service.script import STOPPED, STOPPING, Course, Script, Stage, make_completing_script

Fields = Mapping[str, object]

ENDED = ("Completed", "Failed", "Stopped")
_ECHOED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "CheckpointConfig",
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "TensorBoardOutputConfig",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
    "Environment",
    "RetryStrategy",
)


@dataclass
class Job:
    """One job, with its original request."""

    name: str
    arn: str
    request: Fields
    created: datetime
    course: Course
    tags: dict[str, str] = field(default_factory=dict)

    def state(self, now: datetime) -> tuple[datetime, Stage]:
        return self.course.get_state(now)

    def has_ended(self, now: datetime) -> bool:
        return self.state(now)[1].status in ENDED

    def make_summary(self, now: datetime) -> dict[str, object]:
        since, stage = self.state(now)
        return {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "CreationTime": self.created.timestamp(),
            "LastModifiedTime": since.timestamp(),
            "TrainingJobStatus": stage.status,
            "SecondaryStatus": stage.secondary,
            **({"TrainingEndTime": since.timestamp()} if stage.status in ENDED else {}),
        }

    def make_description(self, now: datetime) -> dict[str, object]:
        stage = self.state(now)[1]
        about: dict[str, object] = self.make_summary(now)
        about |= {key: self.request[key] for key in _ECHOED if key in self.request}
        about["SecondaryStatusTransitions"] = self._list_transitions(now)
        about |= self._list_times(now)
        if stage.failure_reason:
            about["FailureReason"] = stage.failure_reason
        if stage.status == "Completed":
            output = str(rules.get_fields(self.request, "OutputDataConfig").get("S3OutputPath")).rstrip("/")
            about["ModelArtifacts"] = {"S3ModelArtifacts": f"{output}/{self.name}/output/model.tar.gz"}
        if stage.metrics:
            ended = self.state(now)[0].timestamp()
            about["FinalMetricDataList"] = [
                {"MetricName": name, "Value": value, "Timestamp": ended} for name, value in stage.metrics.items()
            ]
        return about

    def _list_transitions(self, now: datetime) -> list[dict[str, object]]:
        past = self.course.list_states(now)
        ends = [at.timestamp() for at, _ in past[1:]]
        return [
            {
                "Status": stage.secondary,
                "StartTime": at.timestamp(),
                "StatusMessage": stage.message,
                **({"EndTime": end} if end is not None else {}),
            }
            for (at, stage), end in zip(past, [*ends, None], strict=True)
        ]

    def _list_times(self, now: datetime) -> dict[str, object]:
        past = self.course.list_states(now)
        began = next((at for at, stage in past if stage.secondary not in ("Starting", "Pending")), None)
        if began is None:
            return {}
        ended = past[-1][0] if past[-1][1].status in ENDED else None
        seconds = int(((ended or now) - began).total_seconds())
        return {
            "TrainingStartTime": began.timestamp(),
            "TrainingTimeInSeconds": seconds,
            # Only set once the job has ended.
            **({"BillableTimeInSeconds": seconds} if ended is not None else {}),
        }


class Jobs:
    """`script` plans the stages of a new job; `quota` is how many instances of a type may run at once.

    A job stops `stopping_seconds` after a request to stop.
    """

    def __init__(self, account: str, region: str) -> None:
        self.script: Callable[[Fields], Script] = lambda _request: make_completing_script()
        self.quota: dict[str, int] = {}
        self.stopping_seconds = STOPPING.seconds
        self.lag_seconds = 0.0
        """The delay of lists."""
        self.token_seconds = float("inf")
        """The lifetime of a list's token."""
        self.by_name: dict[str, Job] = {}
        self._prefix = f"arn:aws:sagemaker:{region}:{account}:training-job/"

    def make_arn(self, name: str) -> str:
        return self._prefix + name

    def create(self, request: Fields, now: datetime) -> dict[str, object]:
        rules.check(request)
        name = str(request["TrainingJobName"])
        if name in self.by_name:
            raise name_taken(self.make_arn(name))
        self._check_room(request, now)
        tags = request.get("Tags")
        self.by_name[name] = Job(
            name=name,
            arn=self.make_arn(name),
            request=request,
            created=now,
            course=Course.start(self.script(request), now),
            tags={str(tag["Key"]): str(tag["Value"]) for tag in tags} if isinstance(tags, list) else {},
        )
        return {"TrainingJobArn": self.make_arn(name)}

    def describe(self, request: Fields, now: datetime) -> dict[str, object]:
        return self._find_job(request).make_description(now)

    def stop(self, request: Fields, now: datetime) -> dict[str, object]:
        job = self._find_job(request)
        status = job.state(now)[1].status
        if status != "InProgress":
            raise make_validation_refusal(f"The request was rejected because the training job is in status {status}.")
        job.course.turn((replace(STOPPING, seconds=self.stopping_seconds), STOPPED), now)
        return {}

    def list(self, request: Fields, now: datetime) -> dict[str, object]:
        seen = now - timedelta(seconds=self.lag_seconds)
        result = [
            job
            for job in self.by_name.values()
            if job.created <= seen and _is_after(job.created, request, "CreationTime")
        ]
        key: Callable[[Job], object] = {
            "Name": lambda job: (job.name, ""),
            "Status": lambda job: (job.state(seen)[1].status, job.name),
        }.get(str(request.get("SortBy")), lambda job: (job.created, job.name))
        result.sort(key=key, reverse=request.get("SortOrder", "Ascending") == "Descending")  # type: ignore[arg-type]
        begin = _parse_position(request, now, self.token_seconds)
        end = begin + (rules.number(request, "MaxResults") or 10)
        # The service scans jobs page by page, and drops those that don't match (aws/aws-sdk#486).
        page = [job for job in result[begin:end] if _is_asked_for(job, request, seen)]
        answer: dict[str, object] = {"TrainingJobSummaries": [job.make_summary(seen) for job in page]}
        if end < len(result):
            answer["NextToken"] = _make_token(end, now)
        return answer

    def add_tags(self, request: Fields, _now: datetime) -> dict[str, object]:
        job = self._find_job_by_arn(request)
        tags = request["Tags"]
        assert isinstance(tags, list)
        job.tags |= {str(tag["Key"]): str(tag["Value"]) for tag in tags}
        return {"Tags": _list_tags(job.tags)}

    def list_tags(self, request: Fields, now: datetime) -> dict[str, object]:
        pairs = _list_tags(self._find_job_by_arn(request).tags)
        begin = _parse_position(request, now, self.token_seconds)
        end = begin + (rules.number(request, "MaxResults") or 50)
        answer: dict[str, object] = {"Tags": pairs[begin:end]}
        if end < len(pairs):
            answer["NextToken"] = _make_token(end, now)
        return answer

    def delete(self, request: Fields, now: datetime) -> dict[str, object]:
        job = self._find_job(request)
        if not job.has_ended(now):
            raise Refusal("ResourceInUse", f"The training job is in status {job.state(now)[1].status}.")
        del self.by_name[job.name]
        return {}

    def _check_room(self, request: Fields, now: datetime) -> None:
        for kind, wanted in rules.count_instances(request).items():
            limit = self.quota.get(kind)
            if limit is None:
                continue
            used = sum(
                rules.count_instances(job.request).get(kind, 0)
                for job in self.by_name.values()
                if not job.has_ended(now)
            )
            if used + wanted > limit:
                raise make_quota_refusal(kind, limit, used, wanted)

    def _find_job(self, request: Fields) -> Job:
        job = self.by_name.get(str(request["TrainingJobName"]))
        if job is None:
            raise make_not_found_refusal()
        return job

    def _find_job_by_arn(self, request: Fields) -> Job:
        arn = str(request["ResourceArn"])
        job = self.by_name.get(arn.removeprefix(self._prefix))
        if job is None or job.arn != arn:
            raise make_not_found_refusal()
        return job


OPERATIONS: Mapping[str, Callable[[Jobs, Fields, datetime], dict[str, object]]] = {
    "CreateTrainingJob": Jobs.create,
    "DescribeTrainingJob": Jobs.describe,
    "StopTrainingJob": Jobs.stop,
    "ListTrainingJobs": Jobs.list,
    "DeleteTrainingJob": Jobs.delete,
    "AddTags": Jobs.add_tags,
    "ListTags": Jobs.list_tags,
}


def answer(jobs: Jobs, operation: str, request: Fields, now: datetime) -> dict[str, object]:
    """Raises Refusal."""
    shapes.check(operation, request)
    return OPERATIONS[operation](jobs, request, now)


def _is_asked_for(job: Job, request: Fields, now: datetime) -> bool:
    since, stage = job.state(now)
    return (
        _is_after(since, request, "LastModifiedTime")
        and str(request.get("NameContains", "")) in job.name
        and request.get("StatusEquals", stage.status) == stage.status
    )


def _is_after(time: datetime, request: Fields, key: str) -> bool:
    after, before = request.get(f"{key}After"), request.get(f"{key}Before")
    seconds = time.timestamp()
    is_late = not isinstance(after, int | float) or seconds > after
    return is_late and (not isinstance(before, int | float) or seconds < before)


def _make_token(position: int, now: datetime) -> str:
    return base64.b64encode(json.dumps({"at": position, "from": now.timestamp()}).encode()).decode()


def _parse_position(request: Fields, now: datetime, token_seconds: float) -> int:
    token = request.get("NextToken")
    if not token:
        return 0
    try:
        document = json.loads(base64.b64decode(str(token)))
        position, made = int(document["at"]), float(document["from"])
    except (ValueError, KeyError, TypeError):
        raise make_validation_refusal("Invalid NextToken") from None
    if now.timestamp() - made > token_seconds:
        raise make_validation_refusal("Invalid NextToken")
    return position


def _list_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
