"""Format the CreateTrainingJob request of a SageMaker job as text for `muster render`, without AWS. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.api.document import Document, escape_unprintable
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.yaml.serialise import to_yaml
from muster.cli.aws_options import check_region, choose_account
from muster.cli.errors import BadInput
from muster.cli.render.placeholders import simulate_apply
from muster.core.training_job.name import build_training_job_name
from muster.render.sagemaker.apply_defaults import apply_defaults
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.job_warnings import make_training_warnings
from muster.render.sagemaker.request.identity import make_job_tags
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import Archive, TrainingRequest

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig

FIRST_ATTEMPT = 1
DEFAULT_REGION = "us-east-1"
"""The region for jobs whose region is unknown. It has all images."""


def format_request(job: Job, region: str | None, account: str | None, config: OperatorConfig | None) -> str:
    """Return the request as YAML, with comments about uploads. By default, the job sets the region and the account.

    Raises `BadInput` if they are unknown, or if muster can't build the request.
    """
    settings = make_request_settings(simulate_apply(job), resolve_region(job, check_region(region), config), account)
    try:
        training_request = build_request(job, settings.region, account)
    except InvalidResource as invalid:
        raise BadInput("\n".join(map(str, invalid.problems))) from None
    comments = [
        f"CreateTrainingJob in {settings.region}, account {settings.account}",
        "the training job's name contains a hash of the resource's uid, and ends with the number of the attempt",
        *_describe_archive(training_request.archive),
        *make_training_warnings(job),
    ]
    return "".join(f"# {escape_unprintable(line)}\n" for line in comments) + to_yaml(training_request.body)


def build_request(job: Job, region: str, account: str | None = None) -> TrainingRequest:
    """Return the request of the job's first attempt. Raises `InvalidResource`."""
    applied_job = simulate_apply(job)
    # Raise the errors that the operator would raise. The request does not contain its defaults.
    apply_defaults(applied_job, region)
    return render_request(applied_job, make_request_settings(applied_job, region, account), load_image_facts())


def make_request_settings(job: Job, region: str, account: str | None) -> RequestSettings:
    """Return the region and account of the job's first attempt. The default of `account` is the role's account."""
    role = job.spec.sagemaker.role if job.spec.sagemaker is not None else None
    name = build_training_job_name(job.metadata, FIRST_ATTEMPT)
    return RequestSettings(region, choose_account(account, role) or "", name, tags=make_job_tags(job, FIRST_ATTEMPT))


def resolve_region(job: Job, region: str | None, config: OperatorConfig | None) -> str:
    """Return the job's region, else `region`, else the operator's. Raises `BadInput` if there is none."""
    job_region = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    if job_region is not None and region is not None and job_region != region:
        raise BadInput(f"--aws-region {region}: the job has spec.sagemaker.region: {job_region}")
    result = job_region or region or (config.sagemaker.region if config is not None else None)
    if result is None:
        raise BadInput("the job has no region: set --aws-region or spec.sagemaker.region")
    return result


def choose_region_or_default(job: Job, config: OperatorConfig | None) -> str:
    """Return the job's region, or the operator's, or DEFAULT_REGION, for results that don't depend on the region."""
    job_region = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    return job_region or (config.sagemaker.region if config is not None else None) or DEFAULT_REGION


def check_request(job: Job, document: Document, config: OperatorConfig | None) -> None:
    """Raise `InvalidResource`, with lines, for a job that has no image or exceeds SageMaker's limits."""
    try:
        build_request(job, choose_region_or_default(job, config))
    except InvalidResource as invalid:
        problems = [
            FieldProblem(problem.path, problem.message, document.find_line(tuple(problem.path.split("."))))
            for problem in invalid.problems
        ]
        raise InvalidResource(tuple(problems), document.source) from None


def _describe_archive(archive: Archive | None) -> list[str]:
    if archive is None:
        return []
    additional = f", with {', '.join(sorted(archive.files))} added" if archive.files else ""
    lines = [f"{archive.uri}: muster uploads the job's code there first{additional}"] if archive.uri else []
    return lines + [
        f"{uri}: muster uploads {len(content)} bytes there first" for uri, content in archive.objects.items()
    ]
