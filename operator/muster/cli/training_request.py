"""`muster render` of a job for SageMaker: the CreateTrainingJob request as text. AWS isn't asked. Pure."""

from __future__ import annotations

from muster.api.document import Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.operator_config import OperatorConfig
from muster.api.serialise import to_yaml
from muster.api.spec import Job
from muster.backends.sagemaker.apply_defaults import apply_defaults
from muster.backends.sagemaker.image_facts import image_facts
from muster.backends.sagemaker.notes import training_notes
from muster.backends.sagemaker.request.identity import own_tags
from muster.backends.sagemaker.request.render import request
from muster.backends.sagemaker.request.setting import Setting
from muster.backends.sagemaker.request.training_request import Archive, TrainingRequest
from muster.cli.aws_options import named_account, named_region
from muster.cli.problem import BadInput
from muster.cli.render import as_applied, one_line
from muster.plan.training_job_name import training_job_name

FIRST_ATTEMPT = 1
ANY_REGION = "us-east-1"
"""A region that has all images: for what is asked of a job whose own isn't known."""


def request_text(job: Job, region: str | None, account: str | None, config: OperatorConfig | None) -> str:
    """The request as YAML, and as comments above it what else is sent. `region` and `account` None: as the job says.

    Raises `BadInput` where neither says it, and for a job that can't be sent.
    """
    setting = setting_of(as_applied(job), known_region(job, named_region(region), config), account)
    try:
        made = made_request(job, setting.region, account)
    except InvalidResource as invalid:
        raise BadInput("\n".join(map(str, invalid.problems))) from None
    comments = [
        f"CreateTrainingJob in {setting.region}, account {setting.account}",
        "the training job's name has a hash of the resource's uid in it, and the attempt's number at its end",
        *_archive_lines(made.archive),
        *training_notes(job),
    ]
    return "".join(f"# {one_line(line)}\n" for line in comments) + to_yaml(made.body)


def made_request(job: Job, region: str, account: str | None = None) -> TrainingRequest:
    """The request of the job's first attempt. Raises `InvalidResource`."""
    applied = as_applied(job)
    # What the operator would refuse; what it finds out by itself stands in no request.
    apply_defaults(applied, region)
    return request(applied, setting_of(applied, region, account), image_facts())


def setting_of(job: Job, region: str, account: str | None) -> Setting:
    """Where the job's first attempt is sent; the account is the role's unless another is named."""
    role = job.spec.sagemaker.role if job.spec.sagemaker is not None else None
    name = training_job_name(job.metadata, FIRST_ATTEMPT)
    return Setting(region, named_account(account, role) or "", name, tags=own_tags(job, FIRST_ATTEMPT))


def known_region(job: Job, region: str | None, config: OperatorConfig | None) -> str:
    """The job's region, else the one that is named, else the operator's. Raises `BadInput` when there is none."""
    own = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    if own is not None and region is not None and own != region:
        raise BadInput(f"--aws-region {region}: the job says spec.sagemaker.region: {own}")
    result = own or region or (config.sagemaker.region if config is not None else None)
    if result is None:
        raise BadInput("the job names no region: give one with --aws-region, or write spec.sagemaker.region")
    return result


def some_region(job: Job, config: OperatorConfig | None) -> str:
    """The job's region or the operator's, else any: for what doesn't depend on it."""
    own = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    return own or (config.sagemaker.region if config is not None else None) or ANY_REGION


def checked_request(job: Job, document: Document, config: OperatorConfig | None) -> None:
    """Raise `InvalidResource`, with the document's lines, for a job that SageMaker has no image or no room for."""
    try:
        made_request(job, some_region(job, config))
    except InvalidResource as invalid:
        problems = [
            FieldProblem(problem.path, problem.message, document.line(tuple(problem.path.split("."))))
            for problem in invalid.problems
        ]
        raise InvalidResource(tuple(problems), document.source) from None


def _archive_lines(archive: Archive | None) -> list[str]:
    if archive is None:
        return []
    beside = f", with {', '.join(sorted(archive.files))} beside it" if archive.files else ""
    lines = [f"{archive.uri}: the job's code is uploaded there first{beside}"] if archive.uri else []
    return lines + [f"{uri}: {len(content)} bytes are uploaded there first" for uri, content in archive.objects.items()]
