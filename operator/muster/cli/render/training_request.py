"""`muster render` of a job for SageMaker: the CreateTrainingJob request as text. No request reaches AWS. Pure."""

from __future__ import annotations

from muster.api.config.operator import OperatorConfig
from muster.api.document import Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.yaml.serialise import to_yaml
from muster.cli.aws_options import named_account, named_region
from muster.cli.problem import BadInput
from muster.cli.render.render import as_applied, one_line
from muster.core.training_job.name import training_job_name
from muster.render.sagemaker.apply_defaults import apply_defaults
from muster.render.sagemaker.image_facts import image_facts
from muster.render.sagemaker.notes import training_notes
from muster.render.sagemaker.request.identity import own_tags
from muster.render.sagemaker.request.render import request
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.training_request import Archive, TrainingRequest

FIRST_ATTEMPT = 1
ANY_REGION = "us-east-1"
"""A region with all images, for questions about a job without a known region."""


def request_text(job: Job, region: str | None, account: str | None, config: OperatorConfig | None) -> str:
    """The request as YAML, with comments about other uploads. `region` and `account` None: as the job says.

    Raises `BadInput` if neither has them, and for a job that muster can't send.
    """
    setting = setting_of(as_applied(job), known_region(job, named_region(region), config), account)
    try:
        made = made_request(job, setting.region, account)
    except InvalidResource as invalid:
        raise BadInput("\n".join(map(str, invalid.problems))) from None
    comments = [
        f"CreateTrainingJob in {setting.region}, account {setting.account}",
        "the training job's name contains a hash of the resource's uid, and ends with the number of the attempt",
        *_archive_lines(made.archive),
        *training_notes(job),
    ]
    return "".join(f"# {one_line(line)}\n" for line in comments) + to_yaml(made.body)


def made_request(job: Job, region: str, account: str | None = None) -> TrainingRequest:
    """The request of the job's first attempt. Raises `InvalidResource`."""
    applied = as_applied(job)
    # Find what the operator would refuse; the defaults that it derives are not part of a request.
    apply_defaults(applied, region)
    return request(applied, setting_of(applied, region, account), image_facts())


def setting_of(job: Job, region: str, account: str | None) -> Setting:
    """The region and account of the job's first attempt; the account is the role's unless another is named."""
    role = job.spec.sagemaker.role if job.spec.sagemaker is not None else None
    name = training_job_name(job.metadata, FIRST_ATTEMPT)
    return Setting(region, named_account(account, role) or "", name, tags=own_tags(job, FIRST_ATTEMPT))


def known_region(job: Job, region: str | None, config: OperatorConfig | None) -> str:
    """The job's region, else the named one, else the operator's. Raises `BadInput` if there is none."""
    own = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    if own is not None and region is not None and own != region:
        raise BadInput(f"--aws-region {region}: the job has spec.sagemaker.region: {own}")
    result = own or region or (config.sagemaker.region if config is not None else None)
    if result is None:
        raise BadInput("the job has no region: set --aws-region, or write spec.sagemaker.region")
    return result


def some_region(job: Job, config: OperatorConfig | None) -> str:
    """The job's region or the operator's, else any: for results that don't depend on it."""
    own = job.spec.sagemaker.region if job.spec.sagemaker is not None else None
    return own or (config.sagemaker.region if config is not None else None) or ANY_REGION


def checked_request(job: Job, document: Document, config: OperatorConfig | None) -> None:
    """Raise `InvalidResource`, with the document's lines, for a job without an image or beyond SageMaker's limits."""
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
    lines = [f"{archive.uri}: muster uploads the job's code there first{beside}"] if archive.uri else []
    return lines + [
        f"{uri}: muster uploads {len(content)} bytes there first" for uri, content in archive.objects.items()
    ]
